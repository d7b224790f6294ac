package badgerdb_test

import (
	"os"
	"path/filepath"
	"strings"
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

func TestAFolderOfAnEarlierFormatGetsThisOne(t *testing.T) {
	t.Parallel()
	dir := oneRecord(t, 10)
	format := filepath.Join(dir, "FORMAT")
	if err := os.WriteFile(format, []byte("promptspool database, format 4\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	open(t, dir)
	if text, err := os.ReadFile(format); err != nil || !strings.HasSuffix(string(text), "format 8\n") {
		t.Errorf("the folder's format is %q (%v), want format 8", text, err)
	}
}
