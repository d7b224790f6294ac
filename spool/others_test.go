package spool

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What others keep in the data folder may be thousands of files: then they are counted now and then, but always before a refusal.
func TestFilesOfOthersThatTakeLongAreCountedNowAndThen(t *testing.T) {
	data := t.TempDir()
	dir := filepath.Join(data, "spool")
	g := newGuard(Config{Dir: dir, DataDir: data, DiskMax: 1 << 30})
	write := func(path string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, 64<<10), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "ours"))
	write(filepath.Join(data, "templates", "1"))
	first := g.count(false)
	if spool := diskBytes(dir, ""); first.spool != spool || first.data != diskBytes(data, "") {
		t.Fatalf("counted %+v; the spool takes %d and the whole %d", first, spool, diskBytes(data, ""))
	}
	g.othersTook = time.Minute
	write(filepath.Join(dir, "ours as well"))
	write(filepath.Join(data, "templates", "2"))
	whole, spool := diskBytes(data, ""), diskBytes(dir, "")
	if soon := g.count(false); soon.spool != spool || soon.data != spool+first.data-first.spool {
		t.Errorf("soon after, %+v; the spool takes %d and the others should be as before", soon, spool)
	}
	if fresh := g.count(true); fresh.data != whole {
		t.Errorf("before a refusal, %+v; the whole takes %d", fresh, whole)
	}
}
