package api

import (
	"reflect"
	"slices"
	"strings"

	"promptspool/api/filterline"
	"promptspool/api/wire"
	"promptspool/api/wire/calendar"
	"promptspool/api/wire/jsonscan"
	"promptspool/api/words"
)

// queryArgs reads the query string into what a route asks for.
func queryArgs[T any](c *exchange) (T, error) { return wire.DecodeQuery[T](c.query()) }

// query returns the query string as an object of strings, without those that are empty.
func (c *exchange) query() (object wire.Object) {
	for name, value := range c.ctx.QueryArgs().All() {
		if len(value) == 0 {
			continue
		}
		text := jsonscan.AppendString(nil, string(value))
		object = append(object, jsonscan.Member{Name: string(name), Value: text})
	}

	return object
}

// A filter line and q are carried out as filter_group, here: the parts below the API know only that.

// decodeSearch reads a search.
func (a *API) decodeSearch(object wire.Object) (wire.Search, error) {
	s, err := wire.Decode[wire.Search](object)
	if err == nil {
		err = a.carryOut(&s.FilterLine, &s.FilterGroup, &s.Q)
	}

	return s, err
}

// decodeRollupSearch reads a search for sessions, traces or users.
func (a *API) decodeRollupSearch(object wire.Object) (wire.RollupSearch, error) {
	s, err := wire.Decode[wire.RollupSearch](object)
	if err != nil {
		return s, err
	}
	if err := a.carryOutRollup(&s.FilterLine, &s.FilterGroup, &s.Having); err != nil {
		return s, err
	}

	return s, a.carryOut(&s.FilterLine, &s.FilterGroup, &s.Q)
}

// carryOutRollup makes a line part of what calls, and what has them, must be.
func (a *API) carryOutRollup(l *wire.FilterLine, calls, having **wire.Filter) error {
	line, clock, err := a.parseLine(*l)
	if err != nil {
		return err
	}

	found, err := line.CompileRollup(clock)
	if err != nil {
		return err
	}
	*having, *calls = filterline.Both(found.Having, *having), filterline.Both(found.Calls, *calls)
	*l = wire.FilterLine{}

	return nil
}

// decodeParts reads a question about statistics.
func (a *API) decodeParts(object wire.Object) (wire.PartsQuery, error) {
	q, err := wire.Decode[wire.PartsQuery](object)
	if err != nil {
		return q, err
	}
	// Also of the days of a series.
	zone := q.Zone
	err = a.carryOut(&q.FilterLine, &q.FilterGroup, &q.Q)
	q.Zone = zone

	return q, err
}

// carryOut narrows a filter by a line and by words, which it takes away.
func (a *API) carryOut(line *wire.FilterLine, group **wire.Filter, words *string) error {
	selected, err := a.readLine(*line)
	if err != nil {
		return err
	}
	text, err := filterline.ParseText(*words)
	if err != nil {
		return err
	}
	sought, err := text.Compile(filterline.Clock{})
	*line, *group, *words = wire.FilterLine{}, filterline.Both(selected, filterline.Both(sought, *group)), ""

	return err
}

// readLine returns what a filter line selects now.
func (a *API) readLine(text wire.FilterLine) (*wire.Filter, error) {
	line, clock, err := a.parseLine(text)
	if err != nil {
		return nil, err
	}

	return line.Compile(clock)
}

// parseLine parses a filter line, and returns what its times refer to.
func (a *API) parseLine(text wire.FilterLine) (line filterline.Line, clock filterline.Clock, err error) {
	zone, ok := calendar.ParseZone(text.Zone)
	if !ok {
		return line, clock, wire.Invalid(wire.FieldError{
			Field:  "tz",
			Reason: "must be a time zone such as Europe/Berlin or +02:00",
		})
	}
	line, err = filterline.Parse(text.Line)

	return line, filterline.Clock{Now: a.c.Clock.Now(), Zone: zone}, err
}

// members are the fields of a body, or the parameters of a query string, that a route knows.
type members struct {
	read []string // has an effect

	// ignored are fields of the hosted service's schema without an effect here. A request with one
	// is served, with a warning, so that the SDKs of that service need no change. A dot stands
	// between the names of a nested field.
	ignored []string

	other otherMembers
}

// otherMembers is what becomes of members that are neither read nor ignored.
type otherMembers int

const (
	rejectOthers otherMembers = iota // a query that leaves something out would answer another question
	warnOfOthers                     // an app still gets its template
	keepOthers                       // a write keeps and forwards them
)

// knownMembers returns the members of a query by their names, with blanks between them.
func knownMembers(read, ignored string) *members {
	return &members{read: strings.Fields(read), ignored: strings.Fields(ignored)}
}

// membersOf is knownMembers for the fields that T has in JSON, and others.
func membersOf[T any](read, ignored string) *members {
	m := knownMembers(read, ignored)
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" && !slices.Contains(m.ignored, name) {
			m.read = append(m.read, name)
		}
	}

	return m
}

// warning returns m with warnings of unknown members instead of errors.
func (m *members) warning() *members {
	m.other = warnOfOthers
	return m
}

// keeping returns m with nothing said of unknown members.
func (m *members) keeping() *members {
	m.other = keepOthers
	return m
}

// membersMax bounds how many unknown members are named.
const membersMax = 32

// checkMembers rejects what the route does not know of the request's query, and notes warnings of
// what has no effect. null and, in a query string, an empty value count as absent.
func (c *exchange) checkMembers() error {
	m := c.route.members
	if m == nil {
		return nil
	}
	object := c.object
	if c.route.body == noBody {
		object = c.query()
	}

	for _, path := range m.ignored {
		if has(object, path) {
			c.warnings = append(c.warnings, path+" has no effect here.")
		}
	}
	if m.other == keepOthers {
		return nil
	}

	var unknown []wire.FieldError
	for _, sent := range object {
		name := sent.Name
		isKey := name == "api_key" && c.route.body != noBody
		isKnown := slices.Contains(m.read, name) || slices.Contains(m.ignored, name)
		if isKey || isKnown || string(sent.Value) == "null" {
			continue
		}
		reason := "is not known to this route, which takes " + strings.Join(m.read, ", ")
		if near := words.Closest(name, m.read); len(near) > 0 {
			reason = "is not known to this route; the closest is " + near[0]
		}
		unknown = append(unknown, wire.FieldError{Field: name, Reason: reason})
		if len(unknown) == membersMax {
			break
		}
	}

	if len(unknown) == 0 {
		return nil
	}
	err := wire.Invalid(unknown...)
	if m.other == rejectOthers {
		return err
	}
	for _, f := range err.Fields {
		c.warnings = append(c.warnings, f.Field+" "+f.Reason+".")
	}

	return nil
}

// has reports whether an object has a member at a path of one or two names.
func has(object wire.Object, path string) bool {
	first, second, nested := strings.Cut(path, ".")
	value, ok := object.Get(first)
	if ok && nested {
		value, ok = jsonscan.Lookup(value, second)
	}

	return ok && string(value) != "null"
}

// withWarnings returns an answer that says what had no effect.
func (c *exchange) withWarnings(answer any) any {
	if len(c.warnings) == 0 {
		return answer
	}

	warned := reflect.New(reflect.TypeOf(answer))
	warned.Elem().Set(reflect.ValueOf(answer))
	if w, ok := warned.Interface().(interface{ Warn(text string) }); ok {
		w.Warn(strings.Join(c.warnings, " "))
	}

	return warned.Interface()
}
