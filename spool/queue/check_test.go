package queue_test

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/spool/disk/disktest"
	"promptspool/spool/queue"
)

// look opens the folder of a stopped spool. At the end of the test it checks that nothing
// in the folder has changed.
func look(t *testing.T, dir string) *queue.Folder {
	t.Helper()
	before := fingerprint(t, dir)
	f, err := queue.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		if diff := cmp.Diff(before, fingerprint(t, dir)); diff != "" {
			t.Errorf("looking changed the folder (-before +after):\n%s", diff)
		}
	})

	return f
}

var seed = maphash.MakeSeed()

// fingerprint describes every file below dir.
func fingerprint(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			files[path] = "folder"
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		// A look into a file that is mapped may turn a hole of nothing into data of nothing.
		data, err := disktest.ReadFile(path)
		files[path] = fmt.Sprintf("%d bytes %x", info.Size(), maphash.Bytes(seed, bytes.TrimRight(data, "\x00")))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return files
}

// check returns the report on a folder.
func check(t *testing.T, f *queue.Folder) queue.Report {
	t.Helper()
	r, err := f.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	return r
}

// checkDir checks a folder and reads its events, without changing it or keeping it open.
func checkDir(t *testing.T, dir string) (r queue.Report, whole []string) {
	t.Helper()
	t.Run("look", func(t *testing.T) {
		f := look(t, dir)
		r = check(t, f)
		for e, err := range f.Waiting() {
			if err != nil {
				t.Fatal(err)
			}
			whole = append(whole, string(e.Data))
		}
	})

	return r, whole
}

// waiting reads all intact events of an open spool.
func waiting(t *testing.T, s *queue.Queue) (texts []string) {
	t.Helper()
	for e, err := range s.Waiting(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(e.Data))
	}

	return texts
}

func TestCheckTellsWhatIsAckedAndWhatWaits(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, generationBytes(900))
	appendAll(t, s, 7, numbered(20)...)
	ack(t, s, 7)

	running, err := s.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	crashed, whole := checkDir(t, copyDir(t, dir))
	closeSpool(t, s)
	stopped, _ := checkDir(t, dir)

	for name, r := range map[string]queue.Report{"running": running, "crashed": crashed, "stopped": stopped} {
		acked, events := uint64(0), 0
		for _, g := range r.Generations {
			acked, events = acked+g.Acked, events+g.Events
		}
		first := r.Generations[0].First
		if r.Events != 13 || events != 13 || acked != 8-first || r.Next != 21 || !r.Sound() {
			t.Errorf("the report on the %s spool: %+v", name, r)
		}
	}

	if running.Bytes != stopped.Bytes || len(whole) != 13 {
		t.Errorf("%d bytes while the spool ran, %d after it stopped; %d intact events",
			running.Bytes, stopped.Bytes, len(whole))
	}
}

func TestCheckOfARunningSpoolFindsDamage(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, generationBytes(900))
	appendAll(t, s, 7, numbered(20)...)
	flip(t, dir, "*.vlog", at("event 2", 0))
	r, err := s.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	want := []queue.Loss{{First: 2, Last: 2, Reason: r.Lost[0].Reason, FoundAt: r.Lost[0].FoundAt}}
	if !cmp.Equal(r.Lost, want) || r.Lost[0].FoundAt.IsZero() ||
		r.Sound() || r.Generations[0].Damaged != 1 || r.Events != 19 {
		t.Errorf("with event 2 damaged the report is %+v", r)
	}
}

func TestALookAndASpoolKeepEachOtherOut(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	refused(t, dir, "in use by another process (pid ")
	if _, err := queue.OpenFolder(dir); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("OpenFolder on an open spool: %v", err)
	}
	_, err := queue.Repair(t.Context(), queue.Config{Dir: dir, Logger: quiet()})
	if err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("Repair on an open spool: %v", err)
	}

	closeSpool(t, s)
	look(t, dir)
	look(t, dir)
	refused(t, dir, "in use")

	if _, err := queue.OpenFolder(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is not a spool") {
		t.Errorf("OpenFolder on a folder that is not a spool: %v", err)
	}
}

func TestWaitingEndsWhereItIsToldTo(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, generationBytes(900))
	appendAll(t, s, 7, numbered(20)...)

	for e, err := range s.Waiting(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Seq == 3 {
			break
		}
		appendAll(t, s, 7, "while it is read")
	}

	n := 0
	for e, err := range s.Waiting(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		if e.Seq == 10 {
			ack(t, s, 12) // events that were read before may still come
		}
	}
	if n < 20 || n > 22 {
		t.Errorf("%d events were read, want 20 to 22", n)
	}

	closeSpool(t, s)
	for _, err := range s.Waiting(t.Context()) {
		if err == nil {
			t.Error("a closed spool yields events")
		}
	}

	f := look(t, dir)
	for range f.Waiting() {
		break
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
