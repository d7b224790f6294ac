package api

import (
	"reflect"
	"slices"
	"strings"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	"promptspool/api/words"
)

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

	for _, path := range m.ignored {
		if c.has(path) {
			c.warnings = append(c.warnings, path+" has no effect here.")
		}
	}
	if m.other == keepOthers {
		return nil
	}

	var unknown []wire.FieldError
	for _, name := range c.sent() {
		if slices.Contains(m.read, name) || slices.Contains(m.ignored, name) {
			continue
		}
		reason := "is not known to this route, which takes " + strings.Join(m.read, ", ")
		if near := words.Closest(name, m.read); len(near) > 0 {
			reason = "is not known to this route; the closest is " + near[0]
		}
		if unknown = append(unknown, wire.FieldError{Field: name, Reason: reason}); len(unknown) == membersMax {
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

// sent returns the names of the request's members, without the key.
func (c *exchange) sent() (names []string) {
	if c.route.body == noBody {
		for name, value := range c.ctx.QueryArgs().All() {
			if len(value) > 0 {
				names = append(names, string(name))
			}
		}
		return names
	}

	for i := range c.object {
		if m := &c.object[i]; m.Name != "api_key" && string(m.Value) != "null" {
			names = append(names, m.Name)
		}
	}

	return names
}

// has reports whether the request has a member at a path of names.
func (c *exchange) has(path string) bool {
	first, rest, nested := strings.Cut(path, ".")
	if c.route.body == noBody {
		return len(c.ctx.QueryArgs().Peek(first)) > 0
	}

	value, ok := c.object.Get(first)
	for nested && ok {
		first, rest, nested = strings.Cut(rest, ".")
		value, ok = jsonscan.Lookup(value, first)
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
