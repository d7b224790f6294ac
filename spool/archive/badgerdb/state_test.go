package badgerdb_test

import (
	"testing"

	"promptspool/spool/archive/archivetest"
	"promptspool/spool/archive/badgerdb"
)

func TestALargeRecordIsNotWrittenWithEachEvent(t *testing.T) {
	t.Parallel()
	db := open(t, t.TempDir())
	db.DeltasFrom(2000)
	archivetest.RunWritten(t, db, 160, db.Written)
}

// BenchmarkScoresOfOneRecord writes 2,000 scores of one record one by one.
func BenchmarkScoresOfOneRecord(b *testing.B) {
	const events = 2000
	for range b.N {
		db, err := badgerdb.Open(badgerdb.Config{Dir: b.TempDir(), Logger: quiet})
		if err != nil {
			b.Fatal(err)
		}
		begun := bytesWritten()
		archivetest.WriteScores(b, db, events)
		b.ReportMetric(float64(bytesWritten()-begun)/events, "written-B/event")
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
