//go:build linux

package badgerdb_test

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/badgerdb"
)

// Near a full disk, events with bodies are refused before small writes are, because
// deletions make space.
func TestBodiesAreRefusedBeforeTheDiskIsFull(t *testing.T) {
	dir := t.TempDir()
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	free := int64(st.Bavail) * st.Bsize

	for name, scene := range map[string]struct {
		freeMin       int64
		bodies, small bool
	}{
		"there is space": {1, true, true},
		"nearly full":    {free + free/2, false, true},
		"full":           {4 * free, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			db, err := badgerdb.Open(badgerdb.Config{Dir: t.TempDir(), Logger: quiet, FreeMin: scene.freeMin})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if least := int64(64 << 20); db.FreeMin() != max(scene.freeMin, least) {
				t.Errorf("it tells that %d bytes stay free", db.FreeMin())
			}

			_, err = db.Apply(t.Context(), "a", []archive.Event{request(t, 1, 10)})
			if took := err == nil; took != scene.bodies {
				t.Errorf("a request: %v", err)
			}
			if err != nil && (!wire.IsCode(err, wire.CodeUnavailable) ||
				!strings.Contains(err.Error(), "--free-min")) {
				t.Errorf("the refusal: %v", err)
			}

			err = db.Beat(t.Context(), wire.Identity{Account: "a"}, wire.Heartbeat{ID: wire.NewID()})
			if took := err == nil; took != scene.small {
				t.Errorf("a heartbeat: %v", err)
			}
		})
	}
}
