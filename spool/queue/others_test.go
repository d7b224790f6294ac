package queue

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Others may keep thousands of files in the data folder. Then the guard counts them only
// now and then, but always before it refuses an event.
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
		t.Fatalf("counted %+v; the spool takes %d, the data folder %d", first, spool, diskBytes(data, ""))
	}

	g.othersTook = time.Minute
	write(filepath.Join(dir, "ours as well"))
	write(filepath.Join(data, "templates", "2"))

	whole, spool := diskBytes(data, ""), diskBytes(dir, "")
	if soon := g.count(false); soon.spool != spool || soon.data != spool+first.data-first.spool {
		t.Errorf("soon after, %+v; the spool takes %d, the others must be as before", soon, spool)
	}
	if fresh := g.count(true); fresh.data != whole {
		t.Errorf("before a refusal, %+v; the data folder takes %d", fresh, whole)
	}
}

// A person may give the data folder as a relative path. The spool's own files must not be
// taken for those of others, or half of --disk-max would be all that there is.
func TestTheSpoolIsNotCountedAsOthersUnderARelativeDataFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("data/spool", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("data/spool/ours", make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}

	c := Config{Dir: "data/spool", DataDir: "./data", DiskMax: 1 << 30}
	if err := c.defaults(); err != nil {
		t.Fatal(err)
	}
	if got, want := newGuard(c).count(true).data, diskBytes("data", ""); got != want {
		t.Errorf("%d bytes are counted in the data folder, which takes %d", got, want)
	}
}
