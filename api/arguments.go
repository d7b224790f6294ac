package api

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"

	"promptspool/api/filterline"
	"promptspool/api/wire"
	"promptspool/api/wire/calendar"
	"promptspool/api/wire/jsonscan"
	"promptspool/api/words"
)

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

// decoded reads the body of a request, or the query string of one without a body.
func decoded[Q any](a *API, c *exchange) (q Q, err error) {
	if c.route.body == noBody {
		q, err = wire.DecodeQuery[Q](c.query())
	} else {
		q, err = wire.DecodeNamed[Q](c.object, c.ident)
	}
	if err == nil {
		err = a.carryOutLine(&q)
	}

	return q, err
}

// carryOutLine makes a filter line and q parts of filter_group and having, here: the parts below the API know
// only those.
func (a *API) carryOutLine(q any) (err error) {
	words := ""
	switch q := q.(type) {
	case *wire.Search:
		err = a.carryOut(&q.FilterLine, &q.FilterGroup, &q.Q)
	case *wire.Export:
		err = a.carryOut(&q.FilterLine, &q.FilterGroup, &q.Q)
	case *wire.StatisticsQuery:
		// The zone is also that of the days of a series.
		zone := q.Zone
		err = a.carryOut(&q.FilterLine, &q.FilterGroup, &q.Q)
		q.Zone = zone
	case *wire.PartsQuery:
		err = a.carryOutLine(&q.StatisticsQuery)
	case *wire.SuggestQuery:
		err = a.carryOut(&q.FilterLine, &q.FilterGroup, &words)
	case *wire.BacktestQuery:
		err = a.carryOut(&q.FilterLine, &q.Filter, &words)
	case *wire.SpanSearch:
		err = a.carryOutRollup(&q.FilterLine, &q.FilterGroup, &q.Having)
	case *wire.RollupSearch:
		err = a.carryOutRollup(&q.FilterLine, &q.FilterGroup, &q.Having)
		if err == nil {
			err = a.carryOut(&q.FilterLine, &q.FilterGroup, &q.Q)
		}
	}

	return err
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

// carryOut narrows a filter by a line and by words, which it takes away.
func (a *API) carryOut(line *wire.FilterLine, group **wire.Filter, words *string) error {
	parsed, clock, err := a.parseLine(*line)
	if err != nil {
		return err
	}
	selected, err := parsed.Compile(clock)
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

// handling is what a route does, and what it knows of its body or its query string.
type handling struct {
	members *members // nil if anything is accepted
	handle  func(*API, *exchange) error
}

// plain handles a request whatever members it has.
func plain(handle func(*API, *exchange) error) handling { return handling{handle: handle} }

// knowing is plain for a request that may have the members of T only.
func knowing[T any](handle func(*API, *exchange) error) handling {
	m := new(members)
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			m.read = append(m.read, name)
		}
	}

	return handling{m, handle}
}

// reading decodes the members of a request for its handler.
func reading[Q any](handle func(a *API, c *exchange, q Q) error) handling {
	return knowing[Q](func(a *API, c *exchange) error {
		q, err := decoded[Q](a, c)
		if err != nil {
			return err
		}
		return handle(a, c, q)
	})
}

// asking answers with what the route's capability, a C, says to the members of a request.
func asking[C, Q, A any](ask func(c C, ctx context.Context, id wire.Identity, q Q) (A, error)) handling {
	return reading(func(a *API, c *exchange, q Q) error {
		said, err := ask(a.capability(c.route.needs).(C), c.context, c.id, q)
		return answer(c, said, err)
	})
}

// removing removes what the path names, and notes it.
func removing[C any](
	remove func(c C, ctx context.Context, id wire.Identity, name string) error, action, message string,
) handling {
	return plain(func(a *API, c *exchange) error {
		err := remove(a.capability(c.route.needs).(C), c.context, c.id, c.ident)
		return a.done(c, err, action, c.ident, "", message)
	})
}

// with returns h with more members, with blanks between them: those that are read, and those that are ignored.
func (h handling) with(read, ignored string) handling {
	m := members{read: strings.Fields(read), ignored: strings.Fields(ignored)}
	if h.members != nil {
		m.read = append(m.read, h.members.read...)
	}
	m.read = slices.DeleteFunc(m.read, func(name string) bool { return slices.Contains(m.ignored, name) })
	h.members = &m

	return h
}

// warning returns h with warnings of unknown members instead of errors.
func (h handling) warning() handling {
	h.members.other = warnOfOthers
	return h
}

// keeping returns h with nothing said of unknown members.
func (h handling) keeping() handling {
	h.members.other = keepOthers
	return h
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
		reason := "is not known to this route, which takes " + cmp.Or(strings.Join(m.read, ", "), "none")
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

// warn adds what had no effect to an answer that has a place for it.
func (c *exchange) warn(answer any) {
	if w, ok := answer.(interface{ Warn(text string) }); ok && len(c.warnings) > 0 {
		w.Warn(strings.Join(c.warnings, " "))
	}
}
