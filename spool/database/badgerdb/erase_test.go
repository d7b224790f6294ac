package badgerdb

import (
	"bytes"
	"context"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/records"
	"promptspool/spool/archive/rollup"
	"promptspool/spool/database/databasetest"
	"promptspool/spool/disk/disktest"
)

// secretBody returns the body of a user's request, with a text that does not compress.
func secretBody(n int, user string) string {
	return `{"function_name":"f","session_id":"of ` + user + `","kwargs":{"prompt":"` + secretText(n) + `"},` +
		`"metadata":{"user":"` + user + `"}}`
}

func secretText(n int) string {
	r := rand.New(rand.NewPCG(uint64(n), 7))
	text := make([]byte, 3000)
	for i := range text {
		text[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[r.IntN(64)]
	}
	return string(text)
}

// inFiles reports whether any file in a folder contains the bytes.
func inFiles(t *testing.T, dir string, needle []byte) bool {
	t.Helper()
	found := false
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := disktest.ReadFile(path)
		found = found || bytes.Contains(content, needle)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return found
}

// versions counts the versions of all keys that contain an id, deleted and older ones
// included.
func versions(t *testing.T, db *DB, k keys, id uuid) (n int) {
	t.Helper()
	var inverted uuid
	for i, b := range id {
		inverted[i] = ^b
	}

	err := db.view(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{AllVersions: true, Prefix: []byte(k)})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			key := it.Item().Key()
			if key[len(k)] != tableTombstone &&
				(bytes.Contains(key, id[:]) || bytes.Contains(key, inverted[:])) {
				n++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	return n
}

func TestADeletionIsErasedAfterARestartToo(t *testing.T) {
	dir := t.TempDir()
	db := openIn(t, dir)

	e := databasetest.Event(t, 1, wire.KindRequest, databasetest.ID(1000), secretBody(1, "x"))
	mustApply(t, db, "a", e)
	if _, err := archive.Delete(t.Context(), db, "a", wire.Deletion{RequestID: databasetest.ID(1000)}); err != nil {
		t.Fatal(err)
	}

	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = openIn(t, dir)
	if db.eraseAsked.Load() == 0 {
		t.Error("the restart forgot that there is something to erase")
	}
	if err := db.Erase(t.Context()); err != nil || inFiles(t, dir, db.codec.Body(e.Body)[100:1000]) {
		t.Errorf("Erase: %v, or the record's bytes are still in the files", err)
	}

	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if db = openIn(t, dir); db.eraseAsked.Load() != 0 {
		t.Error("a restart asks to erase again what was erased")
	}
}

func TestWhatIsDeletedDuringAnErasureIsErasedByTheNext(t *testing.T) {
	dir := t.TempDir()
	db := openIn(t, dir)
	remove := func(n int) {
		t.Helper()
		if _, err := archive.Delete(t.Context(), db, "a", wire.Deletion{RequestID: databasetest.ID(n)}); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 2 {
		e := databasetest.Event(t, n, wire.KindRequest, databasetest.ID(1000+n), secretBody(1, "x"))
		mustApply(t, db, "a", e)
	}

	remove(1000)
	asked := db.eraseBegins()
	remove(1001)
	if err := db.eraseEnds(asked); err != nil || db.eraseAsked.Load() == 0 {
		t.Errorf("nobody erases what was deleted meanwhile, %v", err)
	}

	// Nor does a restart forget it.
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if db = openIn(t, dir); db.eraseAsked.Load() == 0 {
		t.Error("after a restart nobody erases what was deleted meanwhile")
	}
}

// By age to the second, of all accounts; by bytes see databasetest.RunSpanRetention.
func TestRetentionByAge(t *testing.T) {
	db := openIn(t, t.TempDir())
	db.PackEagerly()
	db.now = func() time.Time { return databasetest.Start.Add(29 * time.Second) }
	for n := range 30 {
		e := databasetest.Event(t, n, wire.KindRequest, databasetest.ID(1000+n), secretBody(1, "x"))
		for _, account := range []string{"a", "b"} {
			mustApply(t, db, account, e)
		}
	}

	for _, c := range []struct {
		age  time.Duration // 0 bounds nothing
		left int
	}{{0, 30}, {10 * time.Second, 11}} {
		if _, err := archive.Retain(t.Context(), db, archive.Retention{Age: c.age}, db.now()); err != nil {
			t.Fatal(err)
		}
		page, err := db.Search(t.Context(), "b", query.Query{Limit: 100})
		if err != nil || len(page.Rows) != c.left || page.Rows[0].RequestID != databasetest.ID(1029) {
			t.Errorf("%d rows are left of %v (%v), want the newest %d", len(page.Rows), c.age, err, c.left)
		}
		q := rollup.Query{Names: []string{"of x"}, Sort: rollup.FactOf("turns"), Limit: 1}
		sessions, err := db.Rollups(t.Context(), "b", q)
		if err != nil || sessions.Entries[0].Of[rollup.Turns] != int64(c.left) {
			t.Errorf("their session is %+v (%v)", sessions, err)
		}
	}
}

func TestNothingThatWasMaskedIsLeftInTheFiles(t *testing.T) {
	dir := t.TempDir()
	db := openIn(t, dir)
	db.PackEagerly()

	for n := range 20 {
		tag := "clean"
		if n == 7 {
			tag = databasetest.KeyPlace
		}
		body := `{"tags":["` + tag + `"],` + secretBody(n, tag)[1:]
		e := databasetest.Event(t, n, wire.KindRequest, databasetest.ID(1000+n), body)
		mustApply(t, db, "a", databasetest.WithKey(t, e))
	}

	if !inFiles(t, dir, []byte(databasetest.Key)) {
		t.Fatal("the test does not find a key that exists")
	}

	a := records.New(records.Config{Store: db, Metrics: metrics.New("server", "test")})
	if n, err := a.MaskAll(t.Context(), wire.Identity{Account: "a"}); err != nil || n != 1 {
		t.Fatalf("%d masked (%v), want 1", n, err)
	}

	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if db = openIn(t, dir); db.eraseAsked.Load() == 0 {
		t.Error("the restart forgot that there is something to erase")
	}
	if err := db.Erase(t.Context()); err != nil {
		t.Fatal(err)
	}

	if inFiles(t, dir, []byte(databasetest.Key)) {
		t.Error("the key is still in the files")
	}

	_, body, err := db.Record(t.Context(), "a", databasetest.ID(1007))
	if err != nil || !bytes.Contains(body, []byte("[masked]")) {
		t.Errorf("the masked record: %v, %s", err, body)
	}
}

// A long read does not block writes while the database waits to be reopened.
func TestErasingLetsWritesPassWhileSomebodyReads(t *testing.T) {
	db := openIn(t, t.TempDir())
	reading, read := make(chan bool), make(chan bool)
	go func() {
		_ = db.view(func(*badger.Txn) error {
			reading <- true
			<-read
			return nil
		})
	}()

	<-reading
	erased := make(chan error, 1)
	go func() { erased <- db.Erase(context.Background()) }()

	for n := range 50 {
		e := databasetest.Event(t, n, wire.KindRequest, databasetest.ID(1000+n), `{"function_name":"f"}`)
		mustApply(t, db, "a", e)
	}
	select {
	case err := <-erased:
		t.Errorf("Erase did not wait for a read: %v", err)
	default:
	}

	read <- true
	if err := <-erased; err != nil {
		t.Error(err)
	}
}

// The other bodies of the session were packed against the one that goes, and before that by themselves.
func TestNothingOfADeletedBaseIsLeftInTheFiles(t *testing.T) {
	dir := t.TempDir()
	db := openIn(t, dir)
	texts := ""
	var bodies []string
	for n := range 4 {
		texts = `"` + secretText(n) + `",` + texts
		bodies = append(bodies, `{"kwargs":{"said":[`+texts+`0]},"metadata":{"session_id":"s"}}`)
	}
	for n, body := range bodies {
		mustApply(t, db, "a", databasetest.Event(t, n, wire.KindRequest, databasetest.ID(1000+n), body))
	}
	if err := db.PackBodies(t.Context()); err != nil {
		t.Fatal(err)
	}

	last := db.codec.Body([]byte(bodies[3]))[100:1000]
	if !inFiles(t, dir, last) {
		t.Fatal("the test does not find a body that exists")
	}
	if _, err := archive.Delete(t.Context(), db, "a", wire.Deletion{RequestID: databasetest.ID(1003)}); err != nil {
		t.Fatal(err)
	}
	if err := db.Erase(t.Context()); err != nil || inFiles(t, dir, last) {
		t.Errorf("Erase: %v, or the body is still in the files", err)
	}
	for n, body := range bodies[:3] {
		_, got, err := db.Bodies(t.Context(), "a", databasetest.ID(1000+n))
		if err != nil || string(got[databasetest.ID(n)]) != body {
			t.Errorf("body %d is %.60q (%v)", n, got[databasetest.ID(n)], err)
		}
	}
}
