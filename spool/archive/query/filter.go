package query

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// Bounds of a filter.
const (
	filterDepthMax      = 16
	filterConditionsMax = 100
	filterValuesMax     = 1000 // of one in or not_in
)

// compileFilter returns nil for an empty filter.
func compileFilter(f wire.Filter) (Condition, error) {
	if f.Field == "" && f.Operator == "" && len(f.Filters) == 0 {
		return nil, checkLogic(f.Logic, "filter_group")
	}

	c := filterCompiler{}
	return c.compile(f, "filter_group", 1)
}

// filterCompiler compiles one filter and counts its conditions.
type filterCompiler struct{ conditions int }

// compile compiles the part of the filter at path.
func (c *filterCompiler) compile(f wire.Filter, path string, depth int) (Condition, error) {
	// An empty list is a group, no list is a condition.
	if f.Filters == nil {
		c.conditions++
		if c.conditions > filterConditionsMax {
			return nil, invalid("filter_group", "has more than %d conditions", filterConditionsMax)
		}
		return compileCondition(f, path)
	}

	if depth > filterDepthMax {
		return nil, invalid(path,
			"is nested too deeply; at most %d levels of groups are allowed", filterDepthMax)
	}
	if err := checkLogic(f.Logic, path); err != nil {
		return nil, err
	}
	if f.Field != "" || f.Operator != "" {
		return nil, invalid(path, "has both filters and a condition; put the condition among the filters")
	}

	// The capacity is bounded because the number of filters is not checked yet.
	parts := make([]Condition, 0, min(len(f.Filters), filterConditionsMax))
	for i, part := range f.Filters {
		p, err := c.compile(part, fmt.Sprintf("%s.filters[%d]", path, i), depth+1)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	// Tests of the row come first: they may save the reading of a body.
	slices.SortStableFunc(parts, func(a, b Condition) int {
		return cmp.Compare(columnsOf(a)>>rowcode.ColumnBody, columnsOf(b)>>rowcode.ColumnBody)
	})

	// An OR of nothing matches everything, like an AND of nothing.
	if strings.EqualFold(f.Logic, "OR") && len(parts) > 0 {
		return Any(parts), nil
	}

	return All(parts), nil
}

// checkLogic rejects anything but AND, OR and nothing.
func checkLogic(logic, path string) error {
	if logic == "" || strings.EqualFold(logic, "AND") || strings.EqualFold(logic, "OR") {
		return nil
	}
	return invalid(path+".logic", "must be AND or OR")
}

// invalid returns a 422 about one field.
func invalid(field, format string, args ...any) error {
	return wire.Invalid(wire.FieldError{Field: field, Reason: fmt.Sprintf(format, args...)})
}
