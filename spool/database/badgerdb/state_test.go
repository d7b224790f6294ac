package badgerdb_test

import (
	"testing"

	"promptspool/spool/database/databasetest"
)

func TestALargeRecordIsNotWrittenWithEachEvent(t *testing.T) {
	t.Parallel()
	db := open(t, t.TempDir())
	db.DeltasFrom(2000)
	databasetest.RunWritten(t, db, 160, db.Written)
}
