package badgerdb

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rollup"
	"promptspool/spool/database/badgerdb/blocks"
	"promptspool/spool/database/databasetest"
	"promptspool/spool/database/keyed"
)

func TestCheckFindsWhatDisagrees(t *testing.T) {
	k := keysOf("a")
	id, _ := parseUUID(databasetest.ID(1000))
	event, _ := parseUUID(databasetest.ID(1))
	at := databasetest.Start.Add(time.Second)

	span, _ := parseUUID(databasetest.ID(1001))
	trace, _ := parseUUID(harmedTrace)
	spanAt := databasetest.Start.Add(3 * time.Second)

	traceName := strings.ReplaceAll(harmedTrace, "-", "")
	none := rollup.None()
	wrong := rollup.Sums{Last: math.MaxInt64, Of: [rollup.Numbers]int64{rollup.Spans: 1, rollup.Errors: 1}}

	first := strings.Repeat("\x00", 7) + "\x01"
	templateName := smallKey(keyed.Key{Kind: "template names", Account: "a", Name: first})

	otherState := []byte(`{"request_id":"` + databasetest.ID(1000) + `","history":[]}`)
	otherDelta := []byte(`{"request_id":"` + databasetest.ID(1000) + `","history":[{}]}`)
	db := harmed(t)
	for name, harm := range map[string]write{
		"a row is missing":             {key: k.newest(blocks.EncodePlace(at, id))},
		"a row says something else":    {k.newest(blocks.EncodePlace(at, id)), []byte(`{}`)},
		"a row in the wrong table":     {k.late(blocks.EncodePlace(at, id)), []byte(`{}`)},
		"a row without a record":       {k.newest(blocks.EncodePlace(at.Add(1), id)), []byte(`{}`)},
		"a record is missing":          {key: k.record(id)},
		"a record under another's key": {k.record(event), otherState},
		"a record that is no JSON":     {k.record(id), []byte(`{`)},
		"a delta is missing":           {key: k.delta(id, 1)},
		"a delta without a record":     {k.delta(event, 1), []byte(`{}`)},
		"a delta of something else":    {k.delta(id, 3), otherDelta},
		"a delta that is no JSON":      {k.delta(id, 1), []byte(`{`)},
		"a body is missing":            {key: k.body(id, event)},
		"a body of something else":     {k.body(id, event), []byte(`{}`)},
		"a body without an event":      {k.body(id, id), []byte(`{}`)},
		"the count is wrong":           {k.count(), []byte(`{"records":2,"bytes":3}`)},
		"the count is missing":         {key: k.count()},
		"a span has no place":          {key: k.span(blocks.EncodePlace(spanAt, span))},
		"a span has another place":     {k.span(blocks.EncodePlace(spanAt.Add(1), span)), mark},
		"a trace lacks its span":       {key: k.trace(trace, span)},
		"a trace has another span":     {k.trace(trace, id), mark},
		"a sum is missing":             {key: k.rollup(rollup.Trace, traceName)},
		"a sum of nothing":             {k.rollup(rollup.User, "ann"), none.Encode()},
		"a sum of another session":     {k.rollup(rollup.Session, "s-1"), wrong.Encode()},
		"a sum that is too large":      {k.rollup(rollup.Trace, traceName), wrong.Encode()},
		"a template lacks its name":    {key: templateName},
	} {
		t.Run(name, func(t *testing.T) {
			was, err := replaced(db, harm)
			if err != nil {
				t.Fatal(err)
			}
			if err := db.Check(t.Context()); err == nil {
				t.Error("Check does not find the harm")
			}
			if _, err := replaced(db, was); err != nil {
				t.Fatal(err)
			}
		})
	}

	// Each harm was the only one.
	if err := db.Check(t.Context()); err != nil {
		t.Errorf("Check after all was repaired: %v", err)
	}
}

// replaced makes a write past the committer, and returns the one that undoes it.
func replaced(db *DB, w write) (was write, err error) {
	was.key = w.key
	err = db.bdb.Update(func(txn *badger.Txn) (err error) {
		if was.value, err = loadBytes(txn, w.key); err != nil {
			return err
		}
		if w.value == nil {
			return txn.Delete(w.key)
		}
		return txn.Set(w.key, w.value)
	})
	return was, err
}

// harmedTrace is the trace of the span in a database of harmed, as a UUID.
const harmedTrace = "52adf2cf-8206-e15b-bdd5-b2da7b55fa89"

// harmed opens a database with one record, which has a delta, one span and one template. A
// test may harm it, because it is not checked at the end.
func harmed(t *testing.T) *DB {
	t.Helper()
	db, err := Open(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})

	db.deltaMin = 1
	e := databasetest.Event(t, 1, wire.KindRequest, databasetest.ID(1000), `{"function_name":"f"}`)
	_, applied := db.Apply(context.Background(), "a", []archive.Event{e})
	_, added := db.Apply(context.Background(), "a", []archive.Event{
		databasetest.Event(t, 2, wire.KindScore, databasetest.ID(1000), `{"score":1}`),
	})

	span := databasetest.SpanBody(strings.ReplaceAll(harmedTrace, "-", ""), 1, "step")
	_, traced := db.Apply(context.Background(), "a", []archive.Event{
		databasetest.Event(t, 3, wire.KindSpan, databasetest.ID(1001), span),
	})

	firstVersion := func(*wire.Template) (*wire.Version, bool, error) {
		return &wire.Version{CreatedAt: databasetest.Start}, true, nil
	}
	_, updated := db.UpdateTemplate(context.Background(), "a", "greeting", firstVersion)
	if err := errors.Join(applied, added, traced, updated); err != nil {
		t.Fatal(err)
	}

	return db
}

func TestRowsSortAsPositionsDo(t *testing.T) {
	position := rapid.Custom(func(t *rapid.T) query.Position {
		// From the year 1 to 9999, close together as often as far apart.
		anywhere := rapid.Int64Range(-62135596799, 253402300799)
		seconds := rapid.OneOf(anywhere, rapid.Int64Range(-1, 1)).Draw(t, "seconds")
		nanos := rapid.Int64Range(0, 999_999_999).Draw(t, "nanos")

		return query.Position{
			At:        time.Unix(seconds, nanos).UTC(),
			RequestID: databasetest.ID(rapid.IntRange(0, 2).Draw(t, "id")),
		}
	})

	rapid.Check(t, func(t *rapid.T) {
		a, b := position.Draw(t, "a"), position.Draw(t, "b")
		if rapid.Bool().Draw(t, "same time") {
			b.At = a.At
		}

		ka, _ := placeOf(a)
		kb, _ := placeOf(b)
		byKey := 0
		switch {
		case string(ka) < string(kb):
			byKey = -1
		case string(ka) > string(kb):
			byKey = 1
		}
		if byKey != a.Compare(b) {
			t.Fatalf("keys compare %d, positions %d", byKey, a.Compare(b))
		}
	})
}

func TestNoAccountsKeysLieAmongAnothers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringN(1, 20, 200)
		a, b := name.Draw(t, "a"), name.Draw(t, "b")
		ka, kb := keysOf(a), keysOf(b)
		if prefixed := len(ka) <= len(kb) && kb[:len(ka)] == ka; prefixed != (a == b) {
			t.Fatalf("account %q is a prefix of %q", a, b)
		}
		k, table, rest := accountOf(append(ka.table(tableSet), b...))
		if k != ka || table != tableSet || string(rest) != b {
			t.Fatalf("a key of %q is parsed as %q %q %q", a, k, table, rest)
		}
	})
}
