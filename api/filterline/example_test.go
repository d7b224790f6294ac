package filterline_test

import (
	"fmt"
	"time"

	"promptspool/api/filterline"
)

// noon is when the examples are run, in the time zone of the line's author.
var noon = filterline.Clock{Now: time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC), Zone: time.UTC}

// A line becomes the filter of a search.
func ExampleLine_Compile() {
	line, err := filterline.Parse(`status:error latency:>2s`)
	if err != nil {
		fmt.Println(err)
		return
	}
	selected, err := line.Compile(noon)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range selected.Filters {
		fmt.Println(f.Field, f.Operator, string(f.Value))
	}
	// Output:
	// status is "error"
	// latency_ms gt 2000
}

// A fault names its place.
func ExampleLine_Compile_fault() {
	line, _ := filterline.Parse(`latency:>soon`)
	_, err := line.Compile(noon)
	fmt.Println(err)
	// Output: invalid: filter is wrong at character 9: latency takes a time with its unit, as in 2s, 500ms or 1m30s.
}

// A line can be changed and printed, as the dashboard does when a person clicks a value.
func ExampleParse() {
	line, err := filterline.Parse(`tag:checkout`)
	if err != nil {
		fmt.Println(err)
		return
	}
	line.Terms = append(line.Terms, filterline.Where("model", "", "gpt-4o").Negated())
	fmt.Println(line)
	// Output: tag:checkout -model:gpt-4o
}
