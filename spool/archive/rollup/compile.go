package rollup

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"promptspool/api/wire"
)

// perPageDefault is that of a search for records.
const perPageDefault = 10

// Compile checks a search, except for its filter on calls. Its errors are 422 and name the field at
// fault.
func Compile(s wire.RollupSearch) (q Query, err error) {
	q = Query{Kind: Kind(slices.Index(kinds, s.Of)), Limit: s.PerPage, Ascending: s.SortOrder == "asc"}
	if q.Limit == 0 {
		q.Limit = perPageDefault
	}
	by := s.SortBy
	if by == "" {
		by = "last_seen"
	}
	q.Sort = FactOf(by)
	if q.Sort == nil || q.Kind < 0 {
		return q, invalid("sort_by", "must be one of: %s", strings.Join(wire.RollupSortFields, ", "))
	}

	if s.Cursor != "" {
		after, ok := q.parseCursor(s.Cursor)
		if !ok {
			return q, invalid("cursor",
				"does not belong to this sort_by; send next_cursor of an earlier answer unchanged")
		}
		q.After = &after
	}
	if s.Having != nil {
		err = q.having(*s.Having, "having")
	}

	return q, err
}

// kinds are the kinds by their numbers.
var kinds = []string{Session: "sessions", Trace: "traces", User: "users"}

func invalid(field, format string, args ...any) error {
	return wire.Invalid(wire.FieldError{Field: field, Reason: fmt.Sprintf(format, args...)})
}

// conditionsMax bounds the conditions of a search.
const conditionsMax = 20

// having adds conditions, all of which must hold.
func (q *Query) having(f wire.Filter, path string) error {
	if f.Logic != "" && !strings.EqualFold(f.Logic, "AND") {
		return invalid(path+".logic", "must be AND")
	}
	for i, part := range f.Filters {
		if err := q.having(part, fmt.Sprintf("%s.filters[%d]", path, i)); err != nil {
			return err
		}
	}

	switch {
	case f.Field == "":
		return nil
	case f.Field == "id":
		var part string
		if json.Unmarshal(f.Value, &part) != nil || f.Operator != "contains" && f.Operator != "is" {
			return invalid(path, "must have the operator contains or is, and a string as the value")
		}
		if f.Operator == "is" {
			q.Names = []string{part}
		}
		q.Like = Lower(part)
		return nil
	case f.Operator == "between":
		var ends [2]json.RawMessage
		if json.Unmarshal(f.Value, &ends) != nil {
			return invalid(path+".value", "must be a list of the two ends")
		}
		from, to := f, f
		from.Operator, from.Value, to.Operator, to.Value = "gte", ends[0], "lte", ends[1]
		return q.having(wire.Filter{Filters: []wire.Filter{from, to}}, path)
	case len(q.Where) == conditionsMax:
		return invalid(path, "has more than %d conditions", conditionsMax)
	}

	c := Condition{Fact: FactOf(f.Field), To: math.MaxInt64}
	if c.Fact == nil {
		return invalid(path+".field", "is not known; it may be one of: id, %s",
			strings.Join(wire.RollupSortFields, ", "))
	}
	n, ok := c.read(f.Value)
	if !ok {
		return invalid(path+".value",
			"must be a number or, of first_seen and last_seen, a time such as 2026-01-02T03:04:05Z")
	}
	switch f.Operator {
	case "gte":
		c.From = ceil(n)
	case "gt":
		c.From = floor(n) + 1
	case "lte":
		c.To = floor(n)
	case "lt":
		c.To = ceil(n) - 1
	case "is", "eq":
		c.From, c.To = ceil(n), floor(n)
	default:
		return invalid(path+".operator", "must be one of: gt, gte, lt, lte, eq, is, between")
	}
	q.Where = append(q.Where, c)

	return nil
}

// read reads a value of a filter, in the fact's unit.
func (f *Fact) read(value json.RawMessage) (n float64, ok bool) {
	if strings.HasSuffix(f.Name, "_seen") {
		var at time.Time
		err := json.Unmarshal(value, &at)
		return float64(at.UnixMicro()), err == nil
	}
	err := json.Unmarshal(value, &n)

	return n * f.Unit, err == nil && string(value) != "null"
}

// Bounds are far beyond every sum, and within an int64.
func floor(n float64) int64 { return int64(math.Floor(min(max(n, -1<<60), 1<<60))) }

func ceil(n float64) int64 { return int64(math.Ceil(min(max(n, -1<<60), 1<<60))) }

// Cursor returns the text for the place of an entry.
func (q *Query) Cursor(e *Entry) string {
	at := strconv.FormatInt(q.Sort.of(&e.Sums), 10)
	return base64.RawURLEncoding.EncodeToString([]byte(q.order() + " " + at + " " + e.Name))
}

// After returns the cursor of what follows an entry in a list by last_seen, the last first.
func After(r wire.Rollup) string {
	q := Query{Sort: FactOf("last_seen")}
	return q.Cursor(&Entry{Name: r.ID, Sums: Sums{Last: r.LastSeen.UnixMicro()}})
}

// order names the order in a cursor.
func (q *Query) order() string {
	if q.Ascending {
		return q.Sort.Name + "+"
	}
	return q.Sort.Name + "-"
}

// parseCursor reads what Cursor returned for the same order.
func (q *Query) parseCursor(s string) (p Position, ok bool) {
	text, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return p, false
	}
	parts := strings.SplitN(string(text), " ", 3)
	if len(parts) < 3 || parts[0] != q.order() {
		return p, false
	}
	p.Name = parts[2]
	p.Value, err = strconv.ParseInt(parts[1], 10, 64)

	return p, err == nil && Name(p.Name) != ""
}

// Answer returns an entry as it is answered.
func (e *Entry) Answer() wire.Rollup {
	r := wire.Rollup{
		ID:           e.Name,
		FirstSeen:    time.UnixMicro(e.First).UTC(),
		LastSeen:     time.UnixMicro(e.Last).UTC(),
		Turns:        e.Of[Turns],
		Spans:        e.Of[Spans],
		Cost:         float64(e.Of[Cost]) / 1e9,
		InputTokens:  e.Of[InputTokens],
		OutputTokens: e.Of[OutputTokens],
		Errors:       e.Of[Errors],
		Scores:       e.Of[Scores],
	}
	if r.Scores > 0 {
		mean := float64(e.Of[ScoreSum]) / float64(r.Scores)
		r.MeanScore = &mean
	}

	return r
}
