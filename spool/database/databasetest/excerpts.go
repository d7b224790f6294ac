package databasetest

import (
	"fmt"
	"testing"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
)

// prompted returns a request with a prompt and an answer.
func prompted(in, out string) string {
	return fmt.Sprintf(`{"function_name":"openai.Completion.create","kwargs":{"prompt":%q},`+
		`"request_response":{"choices":[{"text":%q}]}}`, in, out)
}

// excerpts reads lists whose records have their request in a state or in a delta, their own
// or that of an earlier request, and are deleted.
func excerpts(t *testing.T, open Open) {
	s, reopen := open(t)
	apply(t, s, account,
		Event(t, 5, wire.KindRequest, ID(1000), prompted("late", "later")),
		Event(t, 6, wire.KindRequest, ID(1001), prompted("second", "answer")))
	apply(t, s, account,
		Event(t, 4, wire.KindRequest, ID(1000), prompted("early\nline", "first")),
		Event(t, 7, wire.KindScore, ID(1001), `{"score":1}`))

	want := map[string][2]string{ID(1000): {"early", "first"}, ID(1001): {"second", "answer"}}
	for range 2 {
		for _, w := range []wire.Search{{}, {SortBy: "status"}, {Q: "line second"}} {
			for _, row := range search(t, s, account, w).Rows {
				if got := [2]string{row.InputExcerpt, row.OutputExcerpt}; got != want[row.RequestID] {
					t.Errorf("%+v: record %s has the excerpts %q", w, row.RequestID, got)
				}
			}
		}
		bare, err := s.Search(t.Context(), account, query.Query{Limit: 10, Bare: true})
		if err != nil || len(bare.Rows) != 2 || bare.Rows[0].InputExcerpt != "" {
			t.Errorf("a page without excerpts is %+v (%v)", bare.Rows, err)
		}
		for id := range want {
			rec := view(t, s, account, id)
			if got := [2]string{rec.InputExcerpt, rec.OutputExcerpt}; got != want[id] {
				t.Errorf("record %s has the excerpts %q", id, got)
			}
		}
		s = reopen()
	}
}
