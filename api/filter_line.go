package api

import (
	"promptspool/api/filterline"
	"promptspool/api/wire"
	"promptspool/api/wire/calendar"
)

// A filter line is carried out as filter_group and q, here: what is behind the API knows these
// two only.

// decodeSearch reads a search.
func (a *API) decodeSearch(object wire.Object) (wire.Search, error) {
	s, err := wire.DecodeSearch(object)
	if err == nil {
		err = a.carryOut(&s.FilterLine, &s.FilterGroup, &s.Q)
	}

	return s, err
}

// decodeStatistics reads a question about statistics.
func (a *API) decodeStatistics(object wire.Object) (wire.StatisticsQuery, error) {
	q, err := wire.DecodeStatistics(object)
	if err != nil {
		return q, err
	}
	zone := q.Zone // also of the days of a series
	err = a.carryOut(&q.FilterLine, &q.FilterGroup, &q.Q)
	q.Zone = zone

	return q, err
}

// carryOut narrows a filter and words by a line, which it takes away.
func (a *API) carryOut(line *wire.FilterLine, group **wire.Filter, words *string) error {
	selection, err := a.readLine(*line)
	if err != nil {
		return err
	}
	selection = selection.Narrow(*group, *words)
	*line, *group, *words = wire.FilterLine{}, selection.Filter, selection.Words

	return nil
}

// readLine returns what a filter line selects now.
func (a *API) readLine(line wire.FilterLine) (filterline.Selection, error) {
	zone, ok := calendar.ParseZone(line.Zone)
	if !ok {
		return filterline.Selection{}, wire.Invalid(wire.FieldError{
			Field:  "tz",
			Reason: "must be a time zone such as Europe/Berlin or +02:00",
		})
	}

	return filterline.Read(line.Line, filterline.Clock{Now: a.c.Clock.Now(), Zone: zone})
}
