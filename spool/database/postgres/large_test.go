//go:build !race

package postgres_test

import (
	"testing"

	"promptspool/spool/archive"
	"promptspool/spool/database/databasetest"
	"promptspool/spool/database/postgres"
)

func TestLargeArchive(t *testing.T) {
	databasetest.RunLarge(t, func(t *testing.T) (archive.Store, func() archive.Store) {
		dsn := postgres.Empty(t)
		return checked(t, dsn), func() archive.Store { return checked(t, dsn) }
	})
	databasetest.RunDrawn(t, openEmpty)
}

// A copy to and from another kind of database is in the end-to-end tests.
func TestMove(t *testing.T) {
	here := func(t *testing.T) databasetest.Server { return checked(t, postgres.Reused(t)) }
	databasetest.RunMove(t, here, here)
}
