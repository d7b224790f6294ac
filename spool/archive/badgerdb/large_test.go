//go:build !race

package badgerdb_test

import (
	"testing"

	"promptspool/spool/archive/archivetest"
)

func TestLargeArchive(t *testing.T) { inEachLayout(t, archivetest.RunLarge) }

func TestMove(t *testing.T) {
	empty := func(t *testing.T) archivetest.Server { return open(t, t.TempDir()) }
	packed := func(t *testing.T) archivetest.Server {
		db := open(t, t.TempDir())
		db.PackEagerly()
		return db
	}
	archivetest.RunMove(t, empty, packed)
}
