package badgerdb

import (
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/database/databasetest"
)

func TestASearchForWordsEndsWithItsTimeAndGoesOn(t *testing.T) {
	db := openIn(t, t.TempDir())
	db.PackEagerly()
	const n = 40
	for i := range n {
		e := databasetest.Event(t, i, wire.KindRequest, databasetest.ID(1000+i),
			`{"function_name":"openai.chat.completions.create",`+
				`"kwargs":{"messages":[{"role":"user","content":"needle"}]}}`)
		if i > 0 {
			e = databasetest.Event(t, i, wire.KindRequest, databasetest.ID(1000+i), `{"function_name":"f"}`)
		}
		if _, err := db.Apply(t.Context(), "a", []archive.Event{e}); err != nil {
			t.Fatal(err)
		}
	}

	q, err := query.Compile(wire.Search{Q: "needle"})
	if err != nil {
		t.Fatal(err)
	}
	q.Budget = time.Nanosecond

	for steps := 1; steps <= n; steps++ {
		page, err := db.Search(t.Context(), "a", q)
		if err != nil {
			t.Fatal(err)
		}
		if page.Stopped == nil {
			if len(page.Rows) != 1 || page.Rows[0].RequestID != databasetest.ID(1000) || steps == 1 {
				t.Errorf("after %d steps the search found %+v", steps, page.Rows)
			}
			return
		}
		if q.After != nil && q.After.Compare(*page.Stopped) >= 0 {
			t.Fatalf("the search stopped at %v, and the time before at %v", page.Stopped, q.After)
		}
		if len(page.Rows) > 0 {
			return // found, and stopped after it
		}
		q.After = page.Stopped
	}
	t.Error("the search never ends")
}
