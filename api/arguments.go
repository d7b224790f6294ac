package api

import (
	"promptspool/api/filterline"
	"promptspool/api/wire"
	"promptspool/api/wire/calendar"
	"promptspool/api/wire/jsonscan"
)

// queryArgs reads the query string into what a route asks for.
func queryArgs[T any](c *exchange) (T, error) { return wire.DecodeQuery[T](c.query()) }

// query returns the query string as an object of strings.
func (c *exchange) query() (object wire.Object) {
	for name, value := range c.ctx.QueryArgs().All() {
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
	zone := q.Zone // also of the days of a series
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
