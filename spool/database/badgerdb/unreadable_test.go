//go:build !race

package badgerdb_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/badgerdb"
	"promptspool/spool/database/databasetest"
	"promptspool/spool/disk/disktest"
)

// blockRecords is the number of records in the folders of withBlocks. Each is larger than a
// block. The first ones are written on their own, the others together.
const blockRecords, blockAlone = 400, 60

// deep is an offset in a value log of withBlocks that the kernel reads many blocks at a
// time, when it reads it from the start.
const deep = 1_600_000

// withBlocks returns the folder of a database as a stop or a power cut leaves it.
func withBlocks(t *testing.T, crash bool) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "archive")
	db, err := badgerdb.Open(badgerdb.Config{Dir: dir, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}

	var batch []archive.Event
	for n := range blockRecords {
		batch = append(batch, request(t, n, 5000+n))
		if n >= blockAlone && n%20 > 0 {
			continue
		}
		mustApply(t, db, "a", batch...)
		batch = nil
	}
	mustApply(t, db, "a", batch...)

	after := filepath.Join(t.TempDir(), "archive")
	if crash {
		copyFolder(t, dir, after)
	}
	closeChecked(t, db)
	if crash {
		return after
	}

	return dir
}

func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
}

// onVolume copies a folder to a volume whose blocks can be made bad.
func onVolume(t *testing.T, volume *disktest.Volume, folder string) (dir string) {
	t.Helper()
	dir = filepath.Join(volume.Dir, strings.ReplaceAll(t.Name(), "/", ":"))
	copyFolder(t, folder, dir)

	// A hole has no block to break, and DISCARD is a hole so far.
	if err := os.WriteFile(filepath.Join(dir, "DISCARD"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}

	return dir
}

// breakBlock makes a block of the one file with this name unreadable. An offset below 0
// counts from the end.
func breakBlock(t *testing.T, volume *disktest.Volume, pattern string, offset int64) (path string) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) != 1 {
		t.Fatalf("files %v (%v)", paths, err)
	}
	info, err := os.Stat(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	if offset < 0 {
		offset += info.Size()
	}
	volume.Break(paths[0], offset)

	return paths[0]
}

// wholeRecords counts the records whose body is as it was written. Reading any other must
// fail.
func wholeRecords(t *testing.T, db *badgerdb.DB) (whole int) {
	t.Helper()
	for n := range blockRecords {
		_, body, err := db.Record(t.Context(), "a", databasetest.ID(1_000_000+n))
		switch {
		case err == nil && strings.Contains(string(body), `"`+noise(5000+n)+`"`):
			whole++
		case err == nil:
			t.Errorf("record %d has another body: %.100q", n, body)
		case !wire.IsCode(err, wire.CodeInternal) && !wire.IsCode(err, wire.CodeNotFound):
			t.Errorf("record %d: %v", n, err)
		}
	}

	return whole
}

// A server must start on a disk with a bad block. It must keep all records outside the
// block, report what it lost, and take writes.
func TestABlockThatCannotBeReadLosesWhatIsInItAndTheServerStarts(t *testing.T) {
	folders := map[bool]string{false: withBlocks(t, false), true: withBlocks(t, true)}
	type bad struct {
		file   string
		offset int64
		crash  bool
		lost   int // records, at most
	}

	// What lies deep in a file depends on the file system, and on the kernel.
	inDepth := []bad{
		{"*.vlog", deep, true, 2},
		{"*.mem", 200_000, true, 16},
		{"*.sst", 30_000, false, 48},
	}
	volumes := map[string][]bad{"xfs": inDepth, "ext4": append(inDepth,
		bad{"*.vlog", 0, true, 2},
		bad{"*.mem", 0, true, 8},
		bad{"*.vlog", 0, false, 2},
		bad{"DISCARD", 0, false, 0},
		bad{"KEYREGISTRY", 0, false, 0},
	)}
	for system, blocks := range volumes {
		volume := disktest.MountVolume(t, system)
		for _, test := range blocks {
			t.Run(fmt.Sprintf("%s %s at %d, crash %v", system, test.file, test.offset, test.crash), func(t *testing.T) {
				dir := onVolume(t, volume, folders[test.crash])

				// Not earlier: a process that is just starting holds our locks for a moment.
				t.Parallel()
				path := breakBlock(t, volume, filepath.Join(dir, test.file), test.offset)
				startsWithout(t, dir, path, test.lost)
			})
		}
	}
}

// startsWithout opens a database with a bad block in a file, which may have at most this
// many records.
func startsWithout(t *testing.T, dir, path string, lost int) {
	var log bytes.Buffer
	config := badgerdb.Config{
		Dir:     dir,
		Logger:  slog.New(slog.NewTextHandler(&log, nil)),
		ReadAll: strings.HasSuffix(path, ".sst"),
	}
	db, err := badgerdb.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	if whole := wholeRecords(t, db); blockRecords-whole > lost {
		t.Errorf("%d of %d records are intact", whole, blockRecords)
	}

	kept := filepath.Join(dir, "quarantine", filepath.Base(path))
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("the file was not moved to quarantine: %v", err)
	}
	if !strings.Contains(log.String(), path) || !strings.Contains(log.String(), "quarantine") {
		t.Errorf("the log does not say what was lost: %s", log.String())
	}

	d := db.Damage()
	if d.Quarantined != 1 || (d.UnreadableBytes > 0) != (lost > 0) || d.UnreadableBytes > disktest.BlockBytes {
		t.Errorf("the damage is %+v", d)
	}

	if _, err := db.Apply(t.Context(), "a", []archive.Event{request(t, 1000, 5000)}); err != nil {
		t.Errorf("a new write: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}

	log.Reset()
	again, err := badgerdb.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := again.Record(t.Context(), "a", databasetest.ID(1_001_000)); err != nil {
		t.Errorf("the record written since: %v", err)
	}
	if d := again.Damage(); d.Quarantined != 1 || d.UnreadableBytes != 0 {
		t.Errorf("at the next start the damage is %+v", d)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// The table of a single record is in one block of the disk.
func TestATableOfWhichNothingCanBeReadIsLeftOut(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "archive")
	db, err := badgerdb.Open(badgerdb.Config{Dir: folder, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	mustApply(t, db, "a", request(t, 0, 500))
	closeChecked(t, db)

	volume := disktest.MountVolume(t, "ext4")
	dir := onVolume(t, volume, folder)
	breakBlock(t, volume, filepath.Join(dir, "*.sst"), 0)
	for range 2 {
		db, err := badgerdb.Open(badgerdb.Config{Dir: dir, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := db.Record(t.Context(), "a", databasetest.ID(1_000_000)); !wire.IsCode(err, wire.CodeNotFound) {
			t.Errorf("the record that was in the table: %v", err)
		}
		if d := db.Damage(); d.Quarantined != 1 {
			t.Errorf("the damage is %+v", d)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Badger's garbage collection copies a value log's entries up to the first damaged one,
// then deletes the file.
func TestWhatLiesBehindABadBlockOutlivesGarbageCollection(t *testing.T) {
	volume := disktest.MountVolume(t, "ext4")
	dir := onVolume(t, volume, withBlocks(t, false))
	breakBlock(t, volume, filepath.Join(dir, "*.vlog"), 20_000)
	db, err := badgerdb.Open(badgerdb.Config{Dir: dir, Logger: quiet, ReadAll: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	before := wholeRecords(t, db)

	last := databasetest.ID(1_000_000 + blockRecords - 1)
	if _, err := archive.Delete(t.Context(), db, "a", wire.Deletion{RequestID: last}); err != nil {
		t.Fatal(err)
	}
	if err := db.Erase(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := wholeRecords(t, db); after != before-1 || before < blockRecords-2 {
		t.Errorf("%d records were intact; after one was deleted, %d are", before, after)
	}
}

// Without the MANIFEST it is unknown what a table holds, and without FORMAT what its keys
// mean. A guess could bring back deleted records.
func TestAFileWithoutWhichNothingCanBeReadIsNamedWithItsRemedy(t *testing.T) {
	folder, volume := oneRecord(t, 10), disktest.MountVolume(t, "ext4")
	for _, name := range []string{"MANIFEST", "FORMAT"} {
		dir := onVolume(t, volume, folder)
		path := breakBlock(t, volume, filepath.Join(dir, name), 0)
		_, err := badgerdb.Open(badgerdb.Config{Dir: dir, Logger: quiet})
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "restore") {
			t.Errorf("%s cannot be read: %v", name, err)
		}
	}
}
