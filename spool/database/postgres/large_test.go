//go:build !race

package postgres_test

import (
	"context"
	"testing"

	"promptspool/spool/database/badgerdb"
	"promptspool/spool/database/databasetest"
	"promptspool/spool/database/postgres"
)

func TestLargeArchive(t *testing.T) { databasetest.RunLarge(t, openEmpty) }

func TestMove(t *testing.T) {
	here := func(t *testing.T) databasetest.Server {
		db := open(t, postgres.Reused(t))
		t.Cleanup(func() {
			if err := db.Check(context.Background()); err != nil {
				t.Errorf("Check: %v", err)
			}
		})

		return db
	}

	inFolder := func(t *testing.T) databasetest.Server {
		db, err := badgerdb.Open(badgerdb.Config{Dir: t.TempDir(), Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Check(context.Background()); err != nil {
				t.Errorf("Check: %v", err)
			}
			_ = db.Close()
		})

		return db
	}

	t.Run("from Badger", func(t *testing.T) { databasetest.RunMove(t, inFolder, here) })
	t.Run("to Badger", func(t *testing.T) { databasetest.RunMove(t, here, inFolder) })
}
