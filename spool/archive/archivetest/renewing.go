package archivetest

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive"
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

// stoppable is a store that renews some accounts in small steps, and that may be killed
// after each of them, before or after it has kept how far it came.
type stoppable struct {
	archive.Renewable
	accounts []string
	kill     func() bool
}

var errKilled = fmt.Errorf("killed")

func (s stoppable) Accounts(ctx context.Context) ([]string, error) {
	all, err := s.Renewable.Accounts(ctx)
	for _, account := range s.accounts {
		if err == nil && !slices.Contains(all, account) {
			err = fmt.Errorf("the account %q is missing from %q", account, all)
		}
	}
	return s.accounts, err
}

func (s stoppable) Renew(
	ctx context.Context, account string, after *query.Position, _ int,
) (*query.Position, error) {
	return s.Renewable.Renew(ctx, account, after, 2)
}

func (s stoppable) SetRenewal(ctx context.Context, r archive.Renewal) error {
	if s.kill() {
		return errKilled
	}
	err := s.Renewable.SetRenewal(ctx, r)
	if err == nil && s.kill() {
		err = errKilled
	}
	return err
}

// renewing takes from records what an earlier version did not derive, and renews them.
func renewing(t *testing.T, open Open) {
	s, _ := open(t)
	rapid.Check(t, func(r *rapid.T) {
		events := Events(r, 8, 24)
		ids := []string{wire.NewID(), wire.NewID() + " ü%"}
		earlier := s.(interface{ WriteForm(form int) })
		form := rapid.IntRange(0, archive.FormNow).Draw(r, "form")
		earlier.WriteForm(form)
		for _, id := range ids {
			apply(r, s, id, events...)
			if form == 0 {
				forget(r, s, id)
			}
		}
		earlier.WriteForm(archive.FormNow)

		kills := 0
		renewable := stoppable{s.(archive.Renewable), ids, func() bool {
			if kills < 20 && rapid.IntRange(0, 2).Draw(r, "kill") == 0 {
				kills++
				return true
			}
			return false
		}}
		if err := renewable.Renewable.SetRenewal(context.Background(), archive.Renewal{}); err != nil {
			r.Fatal(err)
		}
		for done := false; !done; {
			budget := rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(r, "budget")
			err := archive.Renew(context.Background(), renewable, budget, slog.New(slog.DiscardHandler))
			if err != nil && err != errKilled {
				r.Fatal(err)
			}
			p, err := renewable.Renewal(context.Background())
			if err != nil {
				r.Fatal(err)
			}
			done = p.Done
		}

		states, _ := Fold(events)
		for _, id := range ids {
			sameRows(r, Rows(states), search(r, s, id, wire.Search{PerPage: 10}).Rows)
		}

		// Once it is done, nothing is read again.
		renewable.kill = func() bool { return true }
		if err := archive.Renew(context.Background(), renewable, 0, slog.New(slog.DiscardHandler)); err != nil {
			r.Fatalf("a finished renewal goes on: %v", err)
		}
	})
}

// forget takes from the records of an account what earlier versions did not derive.
func forget(t rapid.TB, s archive.Store, account string) {
	change := func(_ time.Time, r *archive.Request, _ func() ([]byte, error)) (bool, error) {
		changed := r.InputExcerpt != "" || r.OutputExcerpt != ""
		r.InputExcerpt, r.OutputExcerpt = "", ""
		return changed, nil
	}
	if _, _, err := s.Rewrite(context.Background(), account, nil, 100, change); err != nil {
		t.Fatal(err)
	}
}
