package records_test

import (
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/registry/prices"
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
