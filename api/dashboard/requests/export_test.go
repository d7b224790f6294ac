package requests

import (
	"slices"
	"testing"
	"time"

	"promptspool/api/dashboard/filter"
	"promptspool/api/wire"
)

func TestEveryColumnOfTheListHasItsCells(t *testing.T) {
	first := []string{"started_at", "status", "error_message", "request_id", "accepted_at"}
	started := time.Date(2026, 11, 24, 22, 30, 0, 5_000_000, time.UTC)
	for _, c := range filter.Columns {
		header := csvHeader([]string{c.Name})
		if !slices.Equal(header[:len(first)], first) || len(header) == len(first) {
			t.Fatalf("the heading of %s is %v", c.Name, header)
		}
		for _, name := range header {
			if !slices.Contains(wire.CSVColumns, name) && name != "tools" {
				t.Errorf("%s is written as %s, which no CSV has", c.Name, name)
			}
		}
		row := &wire.Row{
			RequestID: "r", ListTime: started, AcceptedAt: started.Add(time.Second), Status: "ERROR",
			OutputExcerpt: "Overloaded", ToolNames: []string{"=now()", "b"},
		}
		line := row.CSV(header)
		want := []string{"2026-11-24T22:30:00.005Z", "ERROR", "Overloaded", "r", "2026-11-24T22:30:01.005Z"}
		if len(line) != len(header) || !slices.Equal(line[:len(first)], want) {
			t.Errorf("%s: %v is the line of %v", c.Name, line, header)
		}
		if c.Name == "tools" && line[len(first)] != "'=now(),b" {
			t.Errorf("the tools are %q, which a spreadsheet may run", line[len(first)])
		}
	}
}
