package api

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"promptspool/api/wire"
)

// What stands in a call's query.

// selector reads version and label from the query; empty means absent.
func (c *call) selector() (wire.Selector, error) {
	version, err := c.count("version", 0, 1<<31-1)
	return wire.Selector{Version: version, Label: string(c.ctx.QueryArgs().Peek("label"))}, err
}

// count reads an integer of at least 1 from the query.
func (c *call) count(name string, absent, most int) (int, error) {
	text := string(c.ctx.QueryArgs().Peek(name))
	if text == "" {
		return absent, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, wire.Invalid(wire.FieldError{Field: name, Reason: "must be an integer from 1 to " + strconv.Itoa(most)})
	}
	return n, nil
}

// flag reads true or false from the query.
func (c *call) flag(name string, absent bool) (bool, error) {
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

// word reads one of a list of words from the query; "" if it is absent.
func (c *call) word(name string, words []string) (string, error) {
	text := string(c.ctx.QueryArgs().Peek(name))
	if text != "" && !slices.Contains(words, text) {
		return "", wire.Invalid(wire.FieldError{Field: name, Reason: "must be one of: " + strings.Join(words, ", ")})
	}
	return text, nil
}

// moment reads a time in ISO 8601 from the query; zero if it is absent.
func (c *call) moment(name string) (time.Time, error) {
	text := string(c.ctx.QueryArgs().Peek(name))
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, wire.Invalid(wire.FieldError{Field: name, Reason: "must be a time such as 2026-01-02T03:04:05Z"})
}

// listQuery reads the query of a list of templates.
func (c *call) listQuery() (wire.TemplateListQuery, error) {
	args := c.ctx.QueryArgs()
	q := wire.TemplateListQuery{Name: string(args.Peek("name")), Label: string(args.Peek("label")), Author: string(args.Peek("created_by_email"))}
	for _, tag := range args.PeekMulti("tags") {
		q.Tags = append(q.Tags, string(tag))
	}
	var err error
	take := func(e error) {
		if err == nil {
			err = e
		}
	}
	var e error
	q.Page, e = c.count("page", 1, wire.PageOffsetMax)
	take(e)
	q.PerPage, e = c.count("per_page", 30, wire.PageItemsMax)
	take(e)
	q.Status, e = c.word("status", wire.TemplateStatuses)
	take(e)
	q.SortBy, e = c.word("sort_by", wire.TemplateSorts)
	take(e)
	q.SortOrder, e = c.word("sort_order", []string{"asc", "desc"})
	take(e)
	for name, at := range map[string]*time.Time{"created_after": &q.CreatedAfter, "created_before": &q.CreatedBefore, "updated_after": &q.UpdatedAfter, "updated_before": &q.UpdatedBefore} {
		*at, e = c.moment(name)
		take(e)
	}
	return q, err
}
