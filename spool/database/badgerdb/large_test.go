//go:build !race

package badgerdb_test

import (
	"testing"

	"promptspool/spool/database/databasetest"
)

func TestLargeArchive(t *testing.T) { inEachLayout(t, databasetest.RunLarge) }

func TestMove(t *testing.T) {
	empty := func(t *testing.T) databasetest.Server { return open(t, t.TempDir()) }
	packed := func(t *testing.T) databasetest.Server {
		db := open(t, t.TempDir())
		db.PackEagerly()
		return db
	}
	databasetest.RunMove(t, empty, packed)
}
