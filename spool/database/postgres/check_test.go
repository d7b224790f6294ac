//go:build !race

package postgres

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
)

// losing is a transaction of which only so many statements succeed.
type losing struct {
	pgx.Tx
	left int
}

func (l *losing) next(ctx context.Context) context.Context {
	if l.left--; l.left >= 0 {
		return ctx
	}

	ended, cancel := context.WithCancel(ctx)
	cancel()

	return ended
}

func (l *losing) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return l.Tx.Query(l.next(ctx), sql, args...)
}

func (l *losing) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return l.Tx.QueryRow(l.next(ctx), sql, args...)
}

func (l *losing) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	return l.Tx.SendBatch(l.next(ctx), b)
}

func TestAStepOfCheckThatFailedRunsAgain(t *testing.T) {
	db := servers(t, 1)[0]
	for account, records := range map[string]int{"a": 1, "b": checkStep, "c": checkStep + 1} {
		var events []archive.Event
		for n := range records {
			id := databasetest.ID(n)
			events = append(events, databasetest.Event(t, n, wire.KindRequest, id, `{"function_name":"f"}`))
		}
		if _, err := db.Apply(t.Context(), account, events); err != nil {
			t.Fatal(err)
		}
	}

	c := newChecker(db)
	steps, failed := 0, 0
	for more := true; more && steps < 10; steps++ {
		// Each try gets a statement further.
		left := -1
		for done := false; !done; {
			err := db.pool.View(t.Context(), func(tx pgx.Tx) (err error) {
				left++
				more, err = c.step(t.Context(), &losing{tx, left})
				return err
			})
			if done = err == nil; !done && left > 10 {
				t.Fatal(err)
			}
		}
		failed += left
	}

	// One without an account, and one for each hundred records or an account's rest.
	if want := 1 + 1 + 2 + 2; steps != want || failed < 2*steps-2 {
		t.Errorf("%d steps, of which %d tries failed; want %d steps", steps, failed, want)
	}
	if err := db.pool.View(t.Context(), func(tx pgx.Tx) error {
		return errors.Join(c.checkTotals(t.Context(), tx), c.checkCounts(t.Context(), tx))
	}); err != nil {
		t.Error(err)
	}
}
