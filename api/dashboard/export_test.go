package dashboard

import (
	"slices"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/api/wire/calendar"
)

func TestEveryColumnOfTheListHasItsCells(t *testing.T) {
	for _, c := range columns {
		header, cells := csvColumns([]string{c.Name})
		for _, name := range header[2:] {
			if !slices.Contains(wire.CSVColumns, name) && name != "tools" {
				t.Errorf("%s is written as %s, which no CSV has", c.Name, name)
			}
		}
		row := &wire.Row{RequestID: "r", ToolNames: []string{"=now()", "b"}}
		line := cells(row)
		if len(header) < 3 || len(line) != len(header) || line[0] != "r" {
			t.Errorf("%s: %v is the line of %v", c.Name, line, header)
		}
		if c.Name == "tools" && line[2] != "'=now(),b" {
			t.Errorf("the tools are %q, which a spreadsheet may run", line[2])
		}
	}
}

func TestAFileOfAViewSaysWhatItIs(t *testing.T) {
	berlin, _ := calendar.ParseZone("Europe/Berlin")
	now := time.Date(2026, 11, 22, 23, 30, 0, 0, time.UTC)
	for line, want := range map[string]string{
		"":                                       "events-all-2026-11-23.jsonl",
		"status:error template:support/triage@3": "events-status-error-template-support-triage-3-2026-11-23.jsonl",
		"\"\u00fc\r\nX: y\" customer:\"a\\\"b\"": "events-x-y-customer-a-b-2026-11-23.jsonl",
		strings.Repeat("x", 90):                  "events-" + strings.Repeat("x", 60) + "-2026-11-23.jsonl",
	} {
		f := newFilter(line)
		f.zone = berlin
		if got := exportName(exportForms[0], f, now); got != want {
			t.Errorf("%q is saved as %s, want %s", line, got, want)
		}
	}
}
