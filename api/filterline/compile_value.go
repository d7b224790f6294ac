package filterline

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/api/words"
)

// compileValue returns the condition that a term's field has one value.
func (l Line) compileValue(t *Term, v *Value, clock Clock) (wire.Filter, error) {
	f := t.field()
	if v.Operator == Exists {
		// A score is a number or a text.
		switch {
		case f.Kind == Score && t.Part != "":
			return condition("score_name", "", "is", t.Part), nil
		case f.Kind == Score:
			return condition("score_name", "", "is_not_null", nil), nil
		}
		return condition(f.JSON, t.Part, "is_not_null", nil), nil
	}

	switch f.Kind {
	case Content:
		return compileText(f, v), nil
	case Template:
		return l.compileTemplate(f, v)
	case Time:
		return l.compileTime(f, v, clock)
	case Number, Duration:
		return l.compileNumber(t, v)
	case Score:
		if v.Operator >= Above || v.Operator == Is && !v.Quoted && isNumber(v.Text) {
			return l.compileNumber(t, v)
		}
		return condition(scoreText, t.Part, operators[v.Operator], v.Text), nil
	}

	// A value that can never be found is a slip of the hand.
	if f.Values != nil && v.Operator == Is {
		i := slices.IndexFunc(f.Values, func(known string) bool { return strings.EqualFold(known, v.Text) })
		if i < 0 {
			return wire.Filter{}, faultAt(l.text, v.at, "%s takes one of: %s%s",
				f.Name, strings.Join(f.Values, ", "), words.DidYouMean(v.Text, f.Values))
		}
		if f.Kind == Flag {
			return condition(flagFields[f.Values[i]], "", "is_true", nil), nil
		}
	}

	return condition(f.JSON, t.Part, operators[v.Operator], v.Text), nil
}

// compileText returns the condition that a text has words, or any part with a * in front.
func compileText(f *Field, v *Value) wire.Filter {
	text := strings.TrimRight(v.Text, "*")
	switch v.Operator {
	case Is:
		return condition(f.JSON, "", "matches", text)
	case Begins:
		return condition(f.JSON, "", "matches", text+"*")
	}

	return condition(f.JSON, "", operators[v.Operator], v.Text)
}

// compileTemplate reads name, name@version or name@label. A name may have an @ itself.
func (l Line) compileTemplate(f *Field, v *Value) (wire.Filter, error) {
	whole := condition(f.JSON, "", operators[v.Operator], v.Text)
	i := strings.LastIndex(v.Text, "@")
	if i <= 0 || v.Quoted || v.Operator != Is {
		return whole, nil
	}

	name, selector := v.Text[:i], v.Text[i+1:]
	named := condition(f.JSON, "", "is", name)
	switch n, err := strconv.Atoi(selector); {
	case selector == "":
		return whole, faultAt(l.text, v.at+i, "a version or a label is missing after the @; quote a name that ends so")
	case err == nil:
		return group("AND", named, condition("prompt_version_number", "", "is", n)), nil
	}
	// A name that contains an @, or a label: whichever exists.
	labelled := group("AND", named, condition("label", "", "is", selector))

	return group("OR", whole, labelled), nil
}

// compileNumber reads a number, an amount of dollars or a duration.
func (l Line) compileNumber(t *Term, v *Value) (wire.Filter, error) {
	read := func(text string, at int) (float64, error) {
		n, expected, ok := parseNumber(t.Field, text)
		if !ok {
			return 0, faultAt(l.text, at, "%s takes %s", t.key(), expected)
		}
		return n, nil
	}

	if v.Operator != Between {
		n, err := read(v.Text, v.at)
		return condition(t.Field.JSON, t.Part, operators[v.Operator], n), err
	}

	// Either end may be missing, not both: Parse has seen to that.
	low, high := 0.0, 0.0
	var err error
	if v.Text != "" {
		low, err = read(v.Text, v.at)
	}
	if err == nil && v.To != "" {
		high, err = read(v.To, v.at+len(v.Text)+2)
	}
	switch {
	case err != nil:
		return wire.Filter{}, err
	case v.To == "":
		return condition(t.Field.JSON, t.Part, "gte", low), nil
	case v.Text == "":
		return condition(t.Field.JSON, t.Part, "lte", high), nil
	case low > high:
		return wire.Filter{}, faultAt(l.text, v.at, "the range ends before it begins")
	}

	return condition(t.Field.JSON, t.Part, "between", []float64{low, high}), nil
}

// parseNumber reads a number of a field; expected says what it should have been.
func parseNumber(f *Field, text string) (n float64, expected string, ok bool) {
	if f.Kind == Duration {
		d, ok := ParseDuration(text)
		return float64(d) / 1e6, "a time with its unit, as in 2s, 500ms or 1m30s", ok
	}
	if f.Name == "cost" {
		text = strings.TrimPrefix(text, "$")
	}

	// JSON has no hexadecimal numbers and no infinity, which ParseFloat reads.
	n, err := strconv.ParseFloat(text, 64)

	return n, "a number", err == nil && json.Valid([]byte(text))
}

func isNumber(text string) bool {
	_, _, ok := parseNumber(&Field{}, text)
	return ok
}

// compileTime reads a time. A day is compared by its beginning or its end, whichever fits.
func (l Line) compileTime(f *Field, v *Value, clock Clock) (wire.Filter, error) {
	var fault error
	read := func(text string, at int) span {
		s, ok := clock.span(text)
		if !ok && fault == nil {
			fault = faultAt(l.text, at, "%s takes a day or a time, as in today, yesterday, 2026-11-21, "+
				"2026-11-21T18:00, or 2h for two hours ago", f.Name)
		}
		return s
	}

	// since: and before: compare by their name.
	operator := operators[v.Operator]
	if f.bound != "" {
		operator = f.bound
	}
	if v.Operator != Between {
		s := read(v.Text, v.at)
		return timeFilter(f.JSON, operator, s), fault
	}

	var from, to span
	if v.Text != "" {
		from = read(v.Text, v.at)
	}
	if v.To != "" {
		to = read(v.To, v.at+len(v.Text)+2)
	}
	low, high := timeFilter(f.JSON, "gte", from), timeFilter(f.JSON, "lte", to)
	switch {
	case v.To == "":
		return low, fault
	case v.Text == "":
		return high, fault
	case fault == nil && from.from.After(to.to):
		fault = faultAt(l.text, v.at, "the range ends before it begins")
	}

	return group("AND", low, high), fault
}

// timeFilter compares a time with a span.
func timeFilter(field, operator string, s span) wire.Filter {
	at := func(operator string, t time.Time) wire.Filter { return condition(field, "", operator, t) }
	// A day is a span: after it means after its end, until it includes it.
	switch {
	case s.isMoment() || operator == "gte" || operator == "lt":
		return at(operator, s.from)
	case operator == "gt":
		return at("gte", s.to)
	case operator == "lte":
		return at("lt", s.to)
	}

	return group("AND", at("gte", s.from), at("lt", s.to))
}
