package main

import (
	"encoding/json"
	"testing"
)

func TestVersionShowsWhatTheReleaseWasBuiltFrom(t *testing.T) {
	was, wasCommit, wasDate := version, commit, date
	t.Cleanup(func() { version, commit, date = was, wasCommit, wasDate })
	version, commit, date = "1.2.3", "0123456789abcdef0123456789abcdef01234567", "2026-01-02T03:04:05Z"

	out := say(t, "version", "-o", "json")
	var got versionInfo
	if err := json.Unmarshal([]byte(out.Out), &got); err != nil {
		t.Fatal(err, out)
	}
	Equal(t, "JSON", []string{got.Version, got.Revision, got.Date}, []string{version, commit, date})

	words := "promptspool 1.2.3 " + got.Platform + " " + got.Go +
		" 0123456789abcdef0123456789abcdef01234567 2026-01-02T03:04:05Z\n"
	Equal(t, "text", say(t, "version"), said{Out: words})
}
