package queue_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/spool/disk/disktest"
	"promptspool/spool/queue"
)

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
				if err := s.Append(t.Context(), 7, []byte("unsynced")); !errors.Is(err, queue.ErrFailed) {
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

			// The next start does not miss an event that never reached the disk, because
			// it was never acknowledged.
			after := copyDir(t, filepath.Join(disk.Below, "spool"))
			zero(t, after, "unsynced")
			found, whole := checkDir(t, after)
			if diff := cmp.Diff(numbered(3), whole); diff != "" || !found.Sound() || found.Uncertain != 0 {
				t.Errorf("the report is %+v; intact events (-want +got):\n%s", found, diff)
			}
		})
	}
}
