package main

import (
	"testing"

	"promptspool/cmd/promptspool/internal/print"
)

// hostile drives a terminal in each way: it clears the screen, rings, reverses the
// direction of text, returns to the start of the line, and makes a link.
const hostile = `\u001b[2J\u0007\u202e\u0000\r\u009b31m\u001b]8;;http://x\u001b\\`

// TestNoCommandLetsDataDriveTheTerminal gives every command that shows data a response
// with hostile texts only.
func TestNoCommandLetsDataDriveTheTerminal(t *testing.T) {
	withoutVariables(t)
	h := `"` + hostile + `"`
	row := `{"request_id":` + h + `,"list_time":"2026-03-01T12:00:00Z","engine":` + h + `,"function_name":` + h +
		`,"provider_type":` + h + `,"status":` + h + `,"tags_array":[` + h + `],
		"prompt_name":` + h + `,"scores":[{"name":` + h + `,"score":1}],"metadata":[{"key":` + h + `,"value":` + h +
		`}],"sidecar":` + h + `}`
	call := `{"kwargs":{"model":` + h + `,"messages":[{"role":` + h + `,"name":` + h + `,"content":` + h +
		`,"tool_call_id":` + h + `}]},
		"request_response":{"choices":[{"message":{"role":"assistant","content":` + h + `,"tool_calls":[{"id":` + h +
		`,"function":{"name":` + h + `,"arguments":` + h + `}}]}}]}}`
	record := `{"success":true,"request_id":` + h + `,"function_name":` + h + `,"provider":` + h + `,"model":` + h +
		`,"status":` + h + `,"error_type":` + h + `,"finish_reason":` + h + `,"tags":[` + h + `],
		"metadata":{` + h + `:` + h + `},"scores":[{"name":` + h + `,"score":1}],"prompt":{"name":` + h +
		`,"label":` + h + `},"group_ids":[` + h + `],
		"events":[{"id":` + h + `,"kind":` + h + `,"sidecar":` + h + `}],"request":` + call + `}`

	totals := `{"requests":1,"errors":1,"scores":[{"name":` + h + `,"count":1}],"latency":{}}`
	sums := `{"success":true,"overall":` + totals + `,"stats":[{"date":` + h + `,"requests":1}],
		"items":[{"value":` + h + `,"version":1,"requests":1,"series":[{"date":` + h + `}]}]}`

	orphans := `{"success":true,"total":1,"items":[{"request_id":` + h + `,"kinds":[` + h + `]}]}`

	answered := func(version, metadata string) string {
		return `{"request_id":` + h + `,"status":"ERROR","prompt_version_number":` + version +
			`,"scores":[{"name":` + h + `,"value":` + version + `}],` +
			`"metadata":[{"key":"row","value":` + metadata + `}]}`
	}
	experiment := `{"success":true,"request":` + call + `,"items":[` + answered("1", h) + `,` + answered("2", h) + `]}`

	for _, c := range []struct {
		answer string
		args   []string
	}{
		{experiment, []string{"experiments", "compare", "e", "e"}},
		{`{"success":true,"total":5,"next_cursor":` + h + `,"items":[` + row + `]}`, []string{"requests", "search"}},
		{`{"success":true,"total":5,"next_cursor":` + h + `,"items":[{"id":` + h + `}]}`, []string{"sessions", "list"}},
		{record, []string{"requests", "get", someID}},
		{sums, []string{"requests", "stats"}},
		{sums, []string{"requests", "stats", "--by", "model"}},
		{sums, []string{"requests", "stats", "--by", "provider"}},
		{orphans, []string{"requests", "orphans"}},
		{`{"success":true,"records":1,"events":1,"request_id":` + h + `}`,
			[]string{"requests", "delete", someID, "--yes"}},
		{`{"success":true,"seen":1,"done":true,"cursor":` + h + `}`, []string{"requests", "reprice"}},
		{`{"success":true,"found":1,"done":true,"kinds":{` + h + `:1},"items":[{"request_id":` + h + `,"kind":` + h +
			`,"path":` + h + `,"begins":` + h + `}]}`, []string{"requests", "scan"}},
		{`{"success":true,"items":[{"id":7,"prompt_name":` + h + `,"labels":[{"name":` + h + `}],"tags":[` + h + `]}]}`,
			[]string{"templates", "list"}},
		{`{"success":true,"id":7,"prompt_name":` + h + `,"release_labels":[` + h + `],"tags":[` + h +
			`],"commit_message":` + h + `,"prompt_template":{` + h + `:` + h + `}}`,
			[]string{"templates", "show", "t"}},
	} {
		url, _ := answering(t, c.answer)
		for _, form := range []string{"table", "json"} {
			got := say(t, append(c.args, "-o", form, "--url", url, "--key", "k")...)
			if got.Code != 0 || got.Out == "" {
				t.Errorf("%v as %s: %+v", c.args, form, got)
			}
			for _, r := range got.Out + got.Err {
				if r != '\n' && print.DrivesTerminal(r) {
					t.Errorf("%v as %s lets %q through:\n%q", c.args, form, r, got.Out)
					break
				}
			}
		}
	}
}
