//go:build !race

package badgerdb_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/badgerdb"
	"promptspool/spool/database/databasetest"
)

// crashDir in the environment makes the test binary the process that is killed.
const crashDir = "BADGERDB_TEST_CRASH_DIR"

// batchOf is how many events the killed process writes at once to a record of their own: a
// request and scores that belong to it. One more score goes to a record that grows until it
// has deltas.
const batchOf = 3

var growing = databasetest.ID(999_999)

func TestKilledInTheMiddleOfFolding(t *testing.T) {
	if dir := os.Getenv(crashDir); dir != "" {
		foldForever(t, dir)
	}

	t.Parallel()
	dir := t.TempDir()
	acked := killed(t, dir, 300)

	db := open(t, dir) // checked when the test ends
	for n := 1; n <= acked; n++ {
		state, _, err := db.Record(t.Context(), "a", databasetest.ID(1_000_000+n))
		if err != nil || len(state.History) != batchOf {
			t.Fatalf("batch %d of %d acknowledged ones has %d of %d events (%v)",
				n, acked, len(state.History), batchOf, err)
		}
	}

	state, _, err := db.Record(t.Context(), "a", growing)
	if err != nil || len(state.History) < acked {
		t.Fatalf("%d scores were acknowledged, %d can be read (%v)", acked, len(state.History), err)
	}
}

// killed runs the test in a process of its own, which is killed after so many acknowledged batches. It
// returns how many were.
func killed(t *testing.T, dir string, batches int) (acked int) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), crashDir+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}

	for lines := bufio.NewScanner(out); acked < batches && lines.Scan(); {
		if acked, err = strconv.Atoi(lines.Text()); err != nil {
			t.Fatalf("the child writes %q, want the number of a batch", lines.Text())
		}
	}

	_ = child.Process.Kill() // SIGKILL, in the middle of writing
	_ = child.Wait()         // returns an error, because the child was killed
	if acked < batches {
		t.Fatalf("the child ended after %d batches", acked)
	}

	return acked
}

// foldForever writes batches until it is killed. It prints the number of each one once it
// is acknowledged.
func foldForever(t *testing.T, dir string) {
	db, err := badgerdb.Open(badgerdb.Config{Dir: dir, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}

	for n := 1; ; n++ {
		// The size grows, so that some bodies go to the value log and some do not.
		batch := []archive.Event{request(t, n, 20*n)}
		for i := range batchOf - 1 {
			score := batch[0]
			score.ID = databasetest.ID(batchOf*n + i + 10_000_000)
			score.Request, score.Hash = nil, ""
			batch = append(batch, score)
		}

		shared := batch[1]
		shared.ID, shared.RequestID = databasetest.ID(batchOf*n+20_000_000), growing
		batch = append(batch, shared)
		mustApply(t, db, "a", batch...)
		fmt.Println(n)
	}
}

func TestKilledInTheMiddleOfPacking(t *testing.T) {
	if dir := os.Getenv(crashDir); dir != "" {
		packForever(t, dir)
	}

	t.Parallel()
	dir := t.TempDir()
	acked := killed(t, dir, 40)
	db := open(t, dir) // checked when the test ends
	compare := func() (found int, same bool) {
		same = true
		for w := range saidWords {
			indexed, scanned := databasetest.WithAndWithoutIndex(t, db, "a", saidWord(w))
			found, same = found+len(scanned), same && slices.Equal(indexed, scanned)
		}
		return found, same
	}
	if found, same := compare(); found < packBatch*acked || !same {
		t.Errorf("%d calls of %d acknowledged ones are found; the same by their index: %v",
			found, packBatch*acked, same)
	}

	// The index does decide.
	db.WithoutWords(t, func() {
		if _, same := compare(); same {
			t.Error("without words in the index, calls are found by it")
		}
	})
}

const saidWords, packBatch = 7, 5

func saidWord(n int) string { return fmt.Sprintf("word%d", n%saidWords) }

// packForever writes batches until it is killed. It prints the number of each one once it is
// acknowledged; most of the time it packs.
func packForever(t *testing.T, dir string) {
	db, err := badgerdb.Open(badgerdb.Config{Dir: dir, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	db.PackEagerly()

	for n := 1; ; n++ {
		var batch []archive.Event
		for i := range packBatch {
			at := packBatch*n + i
			batch = append(batch, databasetest.Says(t, at, databasetest.ID(1_000_000+at), saidWord(at)))
		}
		// A row of a block that stands alone again.
		batch = append(batch, databasetest.Event(t, 500_000+n, wire.KindScore, batch[0].RequestID, `{"score":1}`))
		mustApply(t, db, "a", batch...)
		fmt.Println(n)
	}
}
