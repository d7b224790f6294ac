package badgerdb

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/textindex"
	"promptspool/spool/database/databasetest"
)

// saying returns a request with a text.
func saying(t *testing.T, n, record int, text string) archive.Event {
	t.Helper()
	return databasetest.Event(t, n, wire.KindRequest, databasetest.ID(1000+record),
		fmt.Sprintf(`{"function_name":"f","kwargs":{"messages":[{"role":"user","content":%q}]}}`, text))
}

// found returns the records in which a search finds a word.
func found(t *testing.T, db *DB, word string) (ids []string) {
	t.Helper()
	q, err := query.Compile(wire.Search{PerPage: 100, FilterGroup: &wire.Filter{
		Field: "text", Operator: "matches", Value: fmt.Appendf(nil, "%q", word),
	}})
	if err != nil {
		t.Fatal(err)
	}
	page, err := db.Search(t.Context(), "a", q)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range page.Rows {
		ids = append(ids, row.RequestID)
	}

	return ids
}

// indexed returns how many blocks have a word in their index.
func indexed(t *testing.T, db *DB, word string) (n int) {
	t.Helper()
	k := keysOf("a")
	term := textindex.PhraseTerms(word, false)[0]
	err := db.view(func(txn *badger.Txn) error {
		prefix := append(k.table(tableWords), byte(term.Page()))
		return db.each(t.Context(), txn, prefix, nil, func(_, value []byte) (bool, error) {
			docs := textindex.All()
			page, err := db.codec.Unpack(value, nil)
			if err == nil {
				err = docs.Keep(page, term)
			}
			if docs != (textindex.Docs{}) {
				n++
			}
			return true, err
		})
	})
	if err != nil {
		t.Fatal(err)
	}

	return n
}

func TestWordsAreFoundByTheIndexOfTheirBlock(t *testing.T) {
	db := openIn(t, t.TempDir())
	db.PackEagerly()
	for i := range 30 {
		mustApply(t, db, "a", saying(t, i, i, fmt.Sprintf("call number%d of many", i)))
	}
	if err := db.packAll(t.Context(), (*packing).crowded); err != nil {
		t.Fatal(err)
	}
	if indexed(t, db, "number3") != 1 || indexed(t, db, "many") < 2 || indexed(t, db, "nowhere") != 0 {
		t.Fatalf("number3 is in %d blocks, many in %d", indexed(t, db, "number3"), indexed(t, db, "many"))
	}
	if got := found(t, db, "number3"); !slices.Equal(got, []string{databasetest.ID(1003)}) {
		t.Errorf("number3 is in %v", got)
	}
	if got := found(t, db, "many"); len(got) != 30 {
		t.Errorf("many is in %d calls", len(got))
	}

	// What the index does not have is not looked at, and missed by Check.
	if err := db.Check(t.Context()); err != nil {
		t.Error(err)
	}
	db.WithoutWords(t, func() {
		if got := found(t, db, "number3"); len(got) != 0 {
			t.Errorf("with an index without the word it is in %v", got)
		}
		if err := db.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "lacks a word") {
			t.Errorf("Check of an index without the word: %v", err)
		}
	})
}

// A log record that comes late may change the text of a call that was packed.
func TestATextThatChangesAfterItWasPackedIsFoundByItsNewWords(t *testing.T) {
	db := openIn(t, t.TempDir())
	db.PackEagerly()
	span := func(n, of int, text string) archive.Event {
		messages := fmt.Sprintf(`[{"role":"user","parts":[{"type":"text","content":%q}]}]`, text)
		return databasetest.Event(t, n, wire.KindSpan, databasetest.ID(1000+of), fmt.Sprintf(
			`{"resource":{},"scope":{},"span":{"traceId":"52adf2cf8206e15bbdd5b2da7b55fa89","spanId":"%016x",`+
				`"name":"chat m","startTimeUnixNano":"1795318943782000000","attributes":[`+
				`{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},`+
				`{"key":"gen_ai.request.model","value":{"stringValue":"m"}},`+
				`{"key":"gen_ai.input.messages","value":{"stringValue":%q}}]}}`, of+1, messages))
	}
	for i := range 12 {
		mustApply(t, db, "a", span(i, i, fmt.Sprintf("call number%d", i)))
	}
	for round, want := range []struct{ word, gone string }{{"changed", "number4"}, {"again", "changed"}} {
		mustApply(t, db, "a", span(100+round, 4, "it has "+want.word))
		for range 2 { // alone, and packed
			if got := found(t, db, want.word); !slices.Equal(got, []string{databasetest.ID(1004)}) {
				t.Errorf("%s is in %v", want.word, got)
			}
			if got := found(t, db, want.gone); len(got) != 0 {
				t.Errorf("%s is still in %v", want.gone, got)
			}
			if err := db.packGone(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if indexed(t, db, want.gone) != 0 {
			t.Errorf("%s is still in the index", want.gone)
		}
	}
}
