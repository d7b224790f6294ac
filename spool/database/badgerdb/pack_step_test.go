//go:build !race

package badgerdb

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
)

// Whatever is written while rows are being packed, afterwards the list has each record's
// current row, and no other.
func TestWhatIsWrittenBesidePackingStays(t *testing.T) {
	db := openIn(t, t.TempDir())
	db.packing = packing{every: 1 << 20, newest: 2, step: 2, inBlock: 2, blocks: 100, rows: 6, bytes: 1 << 20}
	databasetest.LimitChecks(t, 20)
	accounts, settledBeside := 0, 0

	rapid.Check(t, func(t *rapid.T) {
		accounts++
		account := fmt.Sprint("a", accounts)
		k := keysOf(account)

		events, records := 0, 0
		apply := func(kind wire.Kind, record, at int, body string) {
			e := databasetest.Event(t, events, kind, databasetest.ID(1000+record), body)
			e.OrderTime = databasetest.Start.Add(time.Duration(at) * time.Second)
			events++
			mustApply(t, db, account, e)
		}
		request := func() {
			apply(wire.KindRequest, records, rapid.IntRange(0, 60).Draw(t, "time"), `{"function_name":"f"}`)
			records++
		}
		for range rapid.IntRange(4, 16).Draw(t, "records before") {
			request()
		}

		var step *packStep
		wrote := false
		settle := func() {
			settled, err := db.finishPack(k, step)
			if err != nil {
				t.Fatal(err)
			}
			if settled && wrote && len(step.writes) > 0 {
				settledBeside++
			}
			step = nil
		}
		t.Repeat(map[string]func(*rapid.T){
			"a request": func(*rapid.T) {
				wrote = true
				request()
			},
			"a score": func(t *rapid.T) {
				wrote = true
				record := rapid.IntRange(0, records-1).Draw(t, "record")
				apply(wire.KindScore, record, 100+events, fmt.Sprintf(`{"name":"s","score":%d}`, events))
			},
			"a deletion": func(t *rapid.T) {
				wrote = true
				record := rapid.IntRange(0, records-1).Draw(t, "record")
				d := wire.Deletion{RequestID: databasetest.ID(1000 + record)}
				if _, err := archive.Delete(t.Context(), db, account, d); err != nil {
					t.Fatal(err)
				}
			},
			"packing begins": func(t *rapid.T) {
				if step != nil {
					settle()
				}
				txn := db.bdb.NewTransaction(false)
				spans, err := db.spans(t.Context(), txn, k)
				txn.Discard()
				if err != nil {
					t.Fatal(err)
				}
				prepared, err := db.preparePack(t.Context(), k, rapid.SampledFrom(spans).Draw(t, "span"))
				if err != nil {
					t.Fatal(err)
				}
				step, wrote = &prepared, false
			},
			"packing ends": func(t *rapid.T) {
				if step == nil {
					t.Skip("none began")
				}
				settle()
			},
			"all is packed": func(t *rapid.T) {
				if step != nil {
					settle()
				}
				if err := db.pack(t.Context(), k); err != nil {
					t.Fatal(err)
				}
			},
		})

		if step != nil {
			settle()
		}
		if err := db.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
	})

	if settledBeside == 0 {
		t.Error("no packing step was settled beside other writes, so the test proves nothing")
	}
}

// A write does not wait while rows are being packed, which can take seconds.
func TestAWriteGoesOnWhileABlockIsMade(t *testing.T) {
	db := openIn(t, t.TempDir())
	k := keysOf("a")

	if _, err := db.preparePack(t.Context(), k, span{}); err != nil {
		t.Fatal(err)
	}
	mustApply(t, db, "a", smallRequest(t))
}
