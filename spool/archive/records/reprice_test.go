package records_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
	"promptspool/registry/prices"
	"promptspool/spool/archive"
	"promptspool/spool/archive/records"
	"promptspool/spool/database/databasetest"
)

// TestRepricingKeepsToTheTimeOfTheCall prices calls in November. The price of their model was
// cut in August.
func TestRepricingKeepsToTheTimeOfTheCall(t *testing.T) {
	db := openStore(t)
	open := func(table *prices.Table) server {
		november := func() time.Time { return time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC) }
		return serverOver(db, at(november), func(c *records.Config) { c.Prices = table })
	}

	call := `{"function_name":"openai.chat.completions.create","kwargs":{"model":"gpt-5.6-sol"},` +
		`"request_response":{"usage":{"prompt_tokens":1000,"completion_tokens":100}}`
	var events []wire.Event
	for n, rest := range []string{
		// Without a start, the time at which the call was accepted counts.
		`}`,
		// A clock that is ahead, in September: the call was accepted before.
		`,"request_start_time":1788220800,"request_end_time":1788220801}`,
		`,"request_start_time":1767225600,"request_end_time":1767225601}`,
	} {
		e := write(n, wire.KindRequest, call+rest)
		e.RequestID = databasetest.ID(1000 + n)
		events = append(events, e)
	}
	given := write(3, wire.KindRequest, `{"provider":"openai","model":"gpt-5.6-sol",`+
		`"input":{"type":"chat","messages":[]},"output":{"type":"chat","messages":[]},`+
		`"price":7,"input_tokens":1,"output_tokens":1}`)
	given.RequestID = databasetest.ID(1003)
	late := write(4, wire.KindRequest, call+`}`)
	late.RequestID, late.AcceptedAt = databasetest.ID(1004), time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)

	a := open(prices.BuiltIn())
	a.record(t, append(events, given, late)...)

	check := func(what string, want ...float64) {
		t.Helper()
		for n, dollars := range want {
			r, err := a.Request(t.Context(), a.id, databasetest.ID(1000+n))
			if err != nil || r.Price == nil || *r.Price != dollars {
				t.Errorf("%s, call %d: %v (%v), want %v", what, n, r.Price, err, dollars)
			}
		}
	}
	reprice := func(changed int) {
		t.Helper()
		got, err := a.Reprice(t.Context(), a.id, "")
		if err != nil || got.Seen != 5 || got.Changed != changed || !got.Done {
			t.Errorf("repriced %+v (%v), want %d changed", got, err, changed)
		}
	}

	check("as they came", 0.008, 0.008, 0.008, 7, 0.006)
	reprice(0)
	check("priced again", 0.008, 0.008, 0.008, 7, 0.006)

	table, err := prices.Over(prices.BuiltIn(),
		[]byte(`{"gpt-5.6-sol":{"input_cost_per_token":1e-6,"output_cost_per_token":1e-6}}`))
	if err != nil {
		t.Fatal(err)
	}
	a = open(table)
	reprice(5) // also what is shown beside the given price
	check("by a file of prices", 0.0011, 0.0011, 0.0011, 7, 0.0011)
	r, err := a.Request(t.Context(), a.id, databasetest.ID(1003))
	if err != nil || r.TablePrice == nil || *r.TablePrice != 2e-6 {
		t.Errorf("beside the given price is %v (%v)", r.TablePrice, err)
	}
	reprice(0)
}

// TestWhatIsReadAgain reads records that another version read otherwise, one in each part. The caller
// breaks off after the first, and begins again.
func TestWhatIsReadAgain(t *testing.T) {
	db := openStore(t)
	now := databasetest.Start
	a := serverOver(db, at(func() time.Time {
		now = now.Add(3 * time.Second) // a part takes 2 s
		return now
	}), func(c *records.Config) { c.Prices = prices.BuiltIn() })

	call := `{"function_name":"openai.chat.completions.create",` +
		`"kwargs":{"model":"gpt-4o","messages":[{"role":"user","content":"Is it warm?"}]},"request_response":` +
		`{"model":"gpt-4o","choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"Yes."}}],` +
		`"usage":{"prompt_tokens":12,"completion_tokens":4}},"request_start_time":1772366400,` +
		`"request_end_time":1772366402,"prompt_id":"weather","prompt_version":2,"tags":["a"],` +
		`"metadata":{"user_id":"ann","session_id":"s-1"},"group_id":"g"`
	bodies := []string{
		call + `}`, call + `,"status":"ERROR","error_type":"Timeout"}`, call + `}`, call + `}`, call + `}`,
		`{"provider":"openai","model":"gpt-4o","price":7,"input":{"type":"chat","messages":[]},` +
			`"output":{"type":"chat","messages":[]},"input_tokens":1,"output_tokens":1}`,
	}
	seven := int64(7)
	misread := []func(r *archive.Request){
		func(r *archive.Request) { r.Tokens.Input, r.Model = &seven, "gpt-4" },
		func(r *archive.Request) { r.Status, r.ErrorType = "SUCCESS", "" },
		func(r *archive.Request) { r.OutputExcerpt, r.OutputShape, r.Unreadable = "", "", true },
		func(*archive.Request) {},
		func(r *archive.Request) { r.Tokens.Output, r.Provider = nil, "" },
		func(r *archive.Request) { r.Model = "gpt-4" },
	}
	anew := make([]wire.Record, len(bodies))
	for n, body := range bodies {
		e := write(n, wire.KindRequest, body)
		e.RequestID = databasetest.ID(1000 + n)
		a.record(t, e)
		anew[n], _ = a.Request(t.Context(), a.id, e.RequestID)
		edit := func(s *archive.State, _ map[string]json.RawMessage) (bool, error) {
			misread[n](&s.Request.Value)
			s.Request.Value.SetPrice(prices.BuiltIn(), s.Request.At)
			return true, nil
		}
		if _, err := archive.Edit(t.Context(), db, a.id.Account, []string{e.RequestID}, false, edit); err != nil {
			t.Fatal(err)
		}
	}

	var sum wire.Repriced
	reprice := func(parts int) {
		t.Helper()
		var part wire.Repriced
		for n := 0; n < parts && !part.Done; n++ {
			var err error
			if part, err = a.Reprice(t.Context(), a.id, part.Cursor); err != nil {
				t.Fatal(err)
			}
			sum.Seen, sum.Changed, sum.Done = sum.Seen+part.Seen, sum.Changed+part.Changed, part.Done
			sum.Parts.Add(part.Parts)
		}
	}
	reprice(1)
	reprice(2 * len(bodies))
	want := wire.Repriced{
		Seen:    1 + len(bodies),
		Changed: len(bodies) - 1,
		Parts:   wire.RepricedParts{Tokens: 2, Price: 3, Status: 1, Model: 3, Text: 1},
		Done:    true,
	}
	if diff := cmp.Diff(want, sum); diff != "" {
		t.Errorf("what was read again (-want +got):\n%s", diff)
	}
	for n := range bodies {
		again, err := a.Request(t.Context(), a.id, databasetest.ID(1000+n))
		if diff := cmp.Diff(anew[n], again); err != nil || diff != "" {
			t.Errorf("call %d, read again (%v), is not as read anew (-want +got):\n%s", n, err, diff)
		}
	}

	sum = wire.Repriced{}
	reprice(2 * len(bodies))
	if sum.Changed != 0 || !sum.Done {
		t.Errorf("a second time: %+v", sum)
	}
}
