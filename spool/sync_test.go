package spool_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/spool"
	"promptspool/spool/disktest"
)

// Badger calls a commit a success although its value log could not be synced; only its log tells.
// Such a write must not be answered, nor one whose write-ahead log could not be synced.
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
				if err := s.Append(t.Context(), 7, []byte("unsynced")); !errors.Is(err, spool.ErrFailed) {
					t.Errorf("a write that is not synced is answered with %v", err)
				}
			}
			select {
			case err := <-s.Failed():
				if !errors.Is(err, spool.ErrFailed) || !strings.Contains(err.Error(), "input/output error") {
					t.Errorf("the reason is %v", err)
				}
			default:
				t.Error("the process goes on")
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}

			// The next start does not miss what never came to the disk: nobody was told that it is there.
			after := copyDir(t, filepath.Join(disk.Below, "spool"))
			zero(t, after, "unsynced")
			found, whole := checkDir(t, after)
			if diff := cmp.Diff(numbered(3), whole); diff != "" || !found.Sound() || found.Uncertain != 0 {
				t.Errorf("the report says %+v; whole events (-want +got):\n%s", found, diff)
			}
		})
	}
}
