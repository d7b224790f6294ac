package rawlog_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/spool/disk/disktest"
	"promptspool/spool/rawlog"
)

// The kernel reads and caches many blocks as one, and fails all of them for a single bad
// one. The others can be read nevertheless, also through a mapping, and also when they have
// left the cache since the file was probed.
func TestABadBlockTakesNoneOfItsNeighbours(t *testing.T) {
	content := make([]byte, 4<<20)
	for i := range content {
		content[i] = byte(rand.Uint32())
	}
	const from, end = 732 * rawlog.BlockBytes, 733 * rawlog.BlockBytes
	want := []rawlog.Span{{From: from, End: end}}

	for _, system := range disktest.FileSystems {
		t.Run(system, func(t *testing.T) {
			volume := disktest.MountVolume(t, system)
			path := filepath.Join(volume.Dir, "file")
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}

			volume.Break(path, from)
			bad, err := rawlog.Probe(path)
			if diff := cmp.Diff(want, bad); diff != "" || err != nil {
				t.Errorf("the bad parts (-want +got):\n%s%v", diff, err)
			}

			volume.Break(path, from)
			err = rawlog.Map(path, func(data []byte, bad []rawlog.Span) error {
				if diff := cmp.Diff(want, bad); diff != "" {
					t.Errorf("the bad parts of the mapping (-want +got):\n%s", diff)
				}

				volume.Forget(path)
				if !bytes.Equal(data[:from], content[:from]) || !bytes.Equal(data[end:], content[end:]) ||
					!bytes.Equal(data[from:end], make([]byte, end-from)) {
					t.Error("the mapping is not the file with zeros for the bad block")
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
