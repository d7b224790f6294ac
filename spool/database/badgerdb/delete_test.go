//go:build !race

package badgerdb

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
)

// A deletion by metadata looks at every span with metadata. Whatever stops it there, the
// requests are gone.
func TestADeletionThatFailsAtASpanHasDeletedTheRequests(t *testing.T) {
	db := harmed(t)
	span, request := databasetest.ID(1001), databasetest.ID(1002)
	_, err := db.Apply(t.Context(), "a", []archive.Event{
		databasetest.Event(t, 4, wire.KindMetadata, span, `{"metadata":{"user":"bob"}}`),
		databasetest.Event(t, 5, wire.KindRequest, request, `{"function_name":"f","metadata":{"user":"ann"}}`),
	})
	if err != nil {
		t.Fatal(err)
	}

	k := keysOf("a")
	id, _ := parseUUID(span)
	err = db.commit.do(t.Context(), 0, func(*badger.Txn) ([]write, error) {
		return []write{{k.record(id), []byte("{")}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}

	before := databasetest.Start.Add(time.Hour)
	sum, err := archive.Delete(t.Context(), db, "a", wire.Deletion{Key: "user", Value: "ann", Before: before})
	if err == nil || sum.Records != 1 {
		t.Errorf("a deletion that fails at a span deleted %d requests, want 1, %v", sum.Records, err)
	}
}

// A value of a record may move out of its row while a deletion runs: from where the deletion
// has yet to look to where it has looked already.
func TestADeletionFindsARecordThatChangesMeanwhile(t *testing.T) {
	db := openIn(t, t.TempDir())

	// A walk over this many asks whether it should end, and there the change comes between.
	// They had the value, but not at the deletion's moment, so they stay.
	var hiding []archive.Event
	for i := range checkEvery {
		id := databasetest.ID(2000 + i)
		hiding = append(hiding,
			databasetest.Event(t, 2*i, wire.KindRequest, id, `{"function_name":"f","metadata":{"k":"del"}}`),
			databasetest.Event(t, 2*i+1, wire.KindMetadata, id, `{"metadata":{"k":"kept"}}`))
	}
	id := databasetest.ID(1000)
	record := databasetest.Event(t, 1, wire.KindRequest, id, `{"function_name":"f","metadata":{"k":"del"}}`)
	change := databasetest.Event(t, 9000, wire.KindMetadata, id, `{"metadata":{"k":"other"}}`)
	d := wire.Deletion{Key: "k", Value: "del", Before: databasetest.Start.Add(5000 * time.Second)}

	asked := 0
	for n, account := range []string{"a", "b", "c", "d"} {
		apply := func(events ...archive.Event) {
			if _, err := db.Apply(context.Background(), account, events); err != nil {
				t.Error(err)
			}
		}
		apply(append(hiding, record)...)

		ctx := &betweenContext{Context: t.Context(), left: n + 1, between: func() { apply(change) }}
		_, err := archive.Delete(ctx, db, account, d)
		if err != nil {
			t.Fatal(err)
		}
		if ctx.left <= 0 {
			asked++
		}

		_, _, err = db.Record(t.Context(), account, id)
		if !wire.IsCode(err, wire.CodeNotFound) {
			t.Errorf("a record that changed when the deletion asked for the %dth time is there: %v", n+1, err)
		}
	}
	if asked == 0 {
		t.Error("no change came between")
	}
}

// betweenContext calls between when it is asked whether it ended for the last time of left.
type betweenContext struct {
	context.Context
	left    int
	between func()
}

func (c *betweenContext) Done() <-chan struct{} {
	if c.left--; c.left == 0 {
		c.between()
	}

	return c.Context.Done()
}

func TestNothingOfADeletedSessionIsLeftInTheFiles(t *testing.T) {
	dir := t.TempDir()
	db := openIn(t, dir)
	databasetest.RunLargeSession(t, db, 2000)
	if !inFiles(t, dir, []byte(databasetest.LargeSession)) {
		t.Fatal("the session is gone before anything was erased, so the test proves nothing")
	}
	if err := db.Erase(t.Context()); err != nil {
		t.Fatal(err)
	}
	if inFiles(t, dir, []byte(databasetest.LargeSession)) {
		t.Error("the session's name is still in the files")
	}
}

func TestNothingOfADeletedRecordIsLeftInTheFiles(t *testing.T) {
	byID := wire.Deletion{RequestID: databasetest.ID(1007)}
	byValue := wire.Deletion{Key: "user", Value: "user-7", Before: databasetest.Start.Add(time.Hour)}
	for name, c := range map[string]struct {
		deletion wire.Deletion
		kind     wire.Kind
	}{
		"a request, by its id":  {byID, wire.KindRequest},
		"a request, by a value": {byValue, wire.KindRequest},
		"a span":                {byID, wire.KindSpan},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			db := openIn(t, dir)
			db.PackEagerly()
			k := keysOf("a")

			var bodies [][]byte
			for n := range 20 {
				body := secretBody(n, fmt.Sprint("user-", n))
				if c.kind == wire.KindSpan {
					body = databasetest.SpanBody("52adf2cf8206e15bbdd5b2da7b55fa89", n, body)
				}
				e := databasetest.Event(t, n, c.kind, databasetest.ID(1000+n), body)
				bodies = append(bodies, db.codec.Body(e.Body)[100:1000])
				mustApply(t, db, "a", e)
			}

			gone, _ := parseUUID(databasetest.ID(1007))
			if !inFiles(t, dir, bodies[7]) || versions(t, db, k, gone) == 0 {
				t.Fatal("the test does not find a record that exists")
			}

			sum, err := archive.Delete(t.Context(), db, "a", c.deletion)
			if err != nil || sum.Records != 1 || sum.GoneBy.IsZero() {
				t.Fatalf("deleted %+v (%v), want one record", sum, err)
			}
			if !inFiles(t, dir, bodies[7]) {
				t.Fatal("the bytes are gone before anything was erased, so the test proves nothing")
			}

			if err := db.Erase(t.Context()); err != nil {
				t.Fatal(err)
			}
			if inFiles(t, dir, bodies[7]) {
				t.Error("the body's bytes are still in the files")
			}
			if n := versions(t, db, k, gone); n != 0 {
				t.Errorf("%d versions of keys with the record's id are left", n)
			}

			for n := range 20 {
				if n != 7 && !inFiles(t, dir, bodies[n]) {
					t.Errorf("the body of record %d is gone too", n)
				}
			}
			if _, _, err := db.Record(t.Context(), "a", databasetest.ID(1008)); err != nil {
				t.Errorf("another record: %v", err)
			}
		})
	}
}

// A set keeps out late reports of a deleted call until its week goes.
func TestTheRetentionTakesWhatSetsKeepOfDeletedRecords(t *testing.T) {
	db := openIn(t, t.TempDir())
	const body = `{"function_name":"f","request_response":{"id":"chatcmpl-0123456789abcdef"}}`
	for n, id := range []string{databasetest.ID(1000), databasetest.ID(1001)} {
		e := databasetest.Event(t, n, wire.KindRequest, id, body)
		if _, err := db.Apply(t.Context(), fmt.Sprint("account-", n), []archive.Event{e}); err != nil {
			t.Fatal(err)
		}
	}
	d := wire.Deletion{RequestID: databasetest.ID(1000)}
	if _, err := archive.Delete(t.Context(), db, "account-0", d); err != nil {
		t.Fatal(err)
	}

	// The set of the call that is still there stays.
	sets := func() (left int) {
		for _, account := range []string{"account-0", "account-1"} {
			_ = db.viewOf(account, func(txn *badger.Txn, k keys) error {
				return db.each(t.Context(), txn, k.table(tableSet), nil, func(_, _ []byte) (bool, error) {
					left++
					return true, nil
				})
			})
		}
		return left
	}

	for weeks, want := range []int{2, 1} {
		cutoff := databasetest.Start.AddDate(0, 0, 7*weeks)
		if _, _, err := db.DropBefore(t.Context(), cutoff); err != nil || sets() != want {
			t.Errorf("%d weeks later there are %d sets, want %d, %v", weeks, sets(), want, err)
		}
	}
}
