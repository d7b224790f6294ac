package api

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"promptspool/api/filterline"
	"promptspool/api/wire"
	"promptspool/api/wire/calendar"
)

// selectorArg reads version and label from the query; an empty one is absent.
func (c *exchange) selectorArg() (wire.Selector, error) {
	version, err := c.intArg("version", 0, 1<<31-1)
	return wire.Selector{Version: version, Label: string(c.ctx.QueryArgs().Peek("label"))}, err
}

// intArg reads an integer from 1 to most from the query, or returns absent.
func (c *exchange) intArg(name string, absent, most int) (int, error) {
	text := string(c.ctx.QueryArgs().Peek(name))
	if text == "" {
		return absent, nil
	}

	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, wire.Invalid(wire.FieldError{
			Field:  name,
			Reason: "must be an integer from 1 to " + strconv.Itoa(most),
		})
	}

	return n, nil
}

// boolArg reads true or false from the query, or returns absent.
func (c *exchange) boolArg(name string, absent bool) (bool, error) {
	switch text := string(c.ctx.QueryArgs().Peek(name)); strings.ToLower(text) {
	case "":
		return absent, nil
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	}

	return false, wire.Invalid(wire.FieldError{Field: name, Reason: "must be true or false"})
}

// wordArg reads one of a list of words from the query; "" if it is absent.
func (c *exchange) wordArg(name string, words []string) (string, error) {
	text := string(c.ctx.QueryArgs().Peek(name))
	if text != "" && !slices.Contains(words, text) {
		return "", wire.Invalid(wire.FieldError{
			Field:  name,
			Reason: "must be one of: " + strings.Join(words, ", "),
		})
	}

	return text, nil
}

// timeArg reads a time in ISO 8601 from the query; zero if it is absent.
func (c *exchange) timeArg(name string) (time.Time, error) {
	text := string(c.ctx.QueryArgs().Peek(name))
	if text == "" {
		return time.Time{}, nil
	}

	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}

	return time.Time{}, wire.Invalid(wire.FieldError{
		Field:  name,
		Reason: "must be a time such as 2026-01-02T03:04:05Z",
	})
}

// listArgs reads the query of a list of templates. It returns the first error.
func (c *exchange) listArgs() (wire.TemplateListQuery, error) {
	args := c.ctx.QueryArgs()
	q := wire.TemplateListQuery{
		Name:   string(args.Peek("name")),
		Label:  string(args.Peek("label")),
		Author: string(args.Peek("created_by_email")),
		External: wire.ExternalID{
			Source: string(args.Peek("external_source")),
			ID:     string(args.Peek("external_id")),
		},
	}
	for _, tag := range args.PeekMulti("tags") {
		q.Tags = append(q.Tags, string(tag))
	}

	var errs [10]error
	q.Page, errs[0] = c.intArg("page", 1, wire.PageOffsetMax)
	q.PerPage, errs[1] = c.intArg("per_page", 30, wire.PageItemsMax)
	q.Status, errs[2] = c.wordArg("status", wire.TemplateStatuses)
	q.SortBy, errs[3] = c.wordArg("sort_by", wire.TemplateSorts)
	q.SortOrder, errs[4] = c.wordArg("sort_order", []string{"asc", "desc"})
	q.CreatedAfter, errs[5] = c.timeArg("created_after")
	q.CreatedBefore, errs[6] = c.timeArg("created_before")
	q.UpdatedAfter, errs[7] = c.timeArg("updated_after")
	q.UpdatedBefore, errs[8] = c.timeArg("updated_before")

	if len(args.Peek("is_snippet")) > 0 {
		q.IsSnippet = new(bool)
		*q.IsSnippet, errs[9] = c.boolArg("is_snippet", false)
	}
	err := cmp.Or(errs[:]...)
	if err == nil && (q.External.Source == "") != (q.External.ID == "") {
		err = wire.Invalid(wire.FieldError{
			Field:  "external_id",
			Reason: "and external_source can only be given together",
		})
	}

	return q, err
}

// A filter line and q are carried out as filter_group, here: the parts below the API know only that.

// decodeSearch reads a search.
func (a *API) decodeSearch(object wire.Object) (wire.Search, error) {
	s, err := wire.DecodeSearch(object)
	if err == nil {
		err = a.carryOut(&s.FilterLine, &s.FilterGroup, &s.Q)
	}

	return s, err
}

// decodeRollupSearch reads a search for sessions, traces or users.
func (a *API) decodeRollupSearch(object wire.Object) (wire.RollupSearch, error) {
	s, err := wire.DecodeRollupSearch(object)
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
	q, err := wire.DecodeParts(object)
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
