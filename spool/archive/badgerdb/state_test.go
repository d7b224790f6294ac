package badgerdb_test

import (
	"testing"

	"promptspool/spool/archive/archivetest"
)

func TestALargeRecordIsNotWrittenWithEachEvent(t *testing.T) {
	t.Parallel()
	db := open(t, t.TempDir())
	db.DeltasFrom(2000)
	archivetest.RunWritten(t, db, 160, db.Written)
}
