//go:build !race

package queue_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/spool/disk/disktest"
	"promptspool/spool/queue"
)

// beforeSync returns the folder of a spool whose power failed while its newest commit, of
// four events, was being made durable. The write-ahead log is on the disk, and some pages
// of the value log are not. Ten events had been acknowledged before.
func beforeSync(t testing.TB, unwritten ...string) string {
	t.Helper()
	dir := t.TempDir()
	s := open(t, dir, generationBytes(1<<20))
	appendAll(t, s, 7, numbered(10)...)
	commitNewest(t, s)
	cut := copyDir(t, dir)
	for _, text := range unwritten {
		zero(t, cut, text)
	}

	return cut
}

// commitNewest appends events 11 to 14 in one commit.
func commitNewest(t testing.TB, s *queue.Queue) {
	t.Helper()
	err := s.Append(7,
		[]byte("event 11"), []byte("event 12"), []byte("event 13"), []byte("event 14"))
	if err != nil {
		t.Fatal(err)
	}
}

// zero overwrites the payload of an event in the first generation's value log with zeros.
func zero(t testing.TB, dir, text string) {
	t.Helper()
	path := find(t, dir, "*.vlog")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	i := placeOf(data, text)
	if i < 0 {
		t.Fatalf("%q is not in %s", text, path)
	}

	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt(make([]byte, len(text)), int64(i)); err != nil {
		t.Fatal(err)
	}
}

func TestWhatThePowerTookBeforeTheSyncIsNotCountedAsLost(t *testing.T) {
	for name, unwritten := range map[string][]string{
		"one of them":      {"event 12"},
		"the last":         {"event 14"},
		"two of them":      {"event 11", "event 13"},
		"the whole commit": {"event 11", "event 12", "event 13", "event 14"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := beforeSync(t, unwritten...)
			isUnwritten := func(text string) bool { return slices.Contains(unwritten, text) }
			want := slices.DeleteFunc(numbered(14), isUnwritten)

			found, whole := checkDir(t, dir)
			if diff := cmp.Diff(want, whole); diff != "" {
				t.Errorf("intact events (-want +got):\n%s", diff)
			}
			if !found.Sound() || found.Uncertain != len(unwritten) || found.LostEvents() != 0 {
				t.Errorf("the report says %+v", found)
			}

			s := open(t, dir)
			appendAll(t, s, 7, "new")
			want = append(want, "new")
			wantTexts(t, s, want)
			st := s.Status()
			if st.Gaps != 0 || st.Uncertain != uint64(len(unwritten)) ||
				st.Events != len(want) || st.Next != uint64(len(want)+1) {
				t.Errorf("status after the power cut: %+v", st)
			}
			if r, err := s.Check(t.Context()); err != nil || !r.Sound() || len(r.Quarantine) > 0 {
				t.Errorf("the report on the running spool is %+v (error %v)", r, err)
			}
			closeSpool(t, s)

			again := open(t, dir)
			wantTexts(t, again, want)
			if st := again.Status(); st.Gaps != 0 || st.Uncertain != 0 {
				t.Errorf("status when opened again: %+v", st)
			}
		})
	}
}

// The same hole counts as a loss if something proves that the commit had been acknowledged.
func TestWhatWasAnsweredIsCountedAsLost(t *testing.T) {
	for name, proof := range map[string]func(*queue.Queue) error{
		"a later commit": func(s *queue.Queue) error { return s.Append(7, []byte("event 15")) },
		"the cursor":     (*queue.Queue).SaveCursor,
		"another generation": func(s *queue.Queue) error {
			return s.Append(7, make([]byte, 1<<20))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir, generationBytes(1<<20))
			appendAll(t, s, 7, numbered(10)...)
			commitNewest(t, s)
			if err := proof(s); err != nil {
				t.Fatal(err)
			}

			after := copyDir(t, dir)
			zero(t, after, "event 12")
			found, _ := checkDir(t, after)
			if found.Sound() || found.Uncertain != 0 || found.LostEvents() != 1 {
				t.Errorf("the report says %+v", found)
			}

			s = open(t, after)
			waiting(t, s) // the payloads of a sealed generation are verified when they are read
			if st := s.Status(); st.Gaps != 1 || st.Uncertain != 0 {
				t.Errorf("status %+v", st)
			}
		})
	}
}

// Badger reports success for a commit whose value log could not be synced, and only logs
// the error. Such a write must not be acknowledged, nor one whose write-ahead log failed
// to sync.
func TestAWriteIsNotAnsweredUnlessBothLogsAreSynced(t *testing.T) {
	if !inOwnProcess(t) {
		return
	}
	for _, log := range []string{"*.vlog", "*.mem"} {
		t.Run(strings.TrimPrefix(log, "*."), func(t *testing.T) {
			disk := disktest.Mount(t)
			dir := filepath.Join(disk.Dir, "spool")
			s, err := tryOpen(dir)
			if err != nil {
				t.Fatal(err)
			}
			appendAll(t, s, 7, numbered(3)...)

			disk.BreakSync(find(t, dir, log))
			for range 2 {
				if err := s.Append(7, []byte("unsynced")); !errors.Is(err, queue.ErrFailed) {
					t.Errorf("an append whose sync failed returns %v, want ErrFailed", err)
				}
			}
			select {
			case err := <-s.Failed():
				if !errors.Is(err, queue.ErrFailed) || !strings.Contains(err.Error(), "input/output error") {
					t.Errorf("Failed delivers %v", err)
				}
			default:
				t.Error("Failed delivers nothing, so the process goes on")
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}

			// The next start does not count as lost what never reached the disk, because
			// it was never acknowledged.
			after := copyDir(t, filepath.Join(disk.Below, "spool"))
			zero(t, after, "unsynced")
			found, whole := checkDir(t, after)
			if diff := cmp.Diff(numbered(3), whole); diff != "" || !found.Sound() || found.Uncertain != 1 {
				t.Errorf("the report is %+v; intact events (-want +got):\n%s", found, diff)
			}
		})
	}
}
