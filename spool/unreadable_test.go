//go:build !race

package spool_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/metrics/parts"
	"promptspool/spool"
	"promptspool/spool/disktest"
	"promptspool/spool/generation"
)

// wide returns the texts of n events that are larger than a block.
func wide(n int) []string {
	var texts []string
	for i := range n {
		texts = append(texts, fmt.Sprintf("event %03d ", i+1)+strings.Repeat("x", 5000))
	}

	return texts
}

// withBlocks returns the folder of a spool with 55 such events waiting, and five more in
// the held lane, after a stop or a power cut.
func withBlocks(t testing.TB, crash bool) string {
	t.Helper()
	dir := t.TempDir()
	s := open(t, dir, generationBytes(1<<20))
	appendAll(t, s, 7, wide(60)...)

	held, err := s.Read(t.Context(), 1, 5, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Hold(7, "refused", held); err != nil {
		t.Fatal(err)
	}

	ack(t, s, 5)
	if err := s.SaveCursor(); err != nil {
		t.Fatal(err)
	}

	if crash {
		return copyDir(t, dir)
	}
	closeSpool(t, s)

	return dir
}

// copyTo copies a folder to a disk of which blocks can be made bad. It returns the copy.
func copyTo(t testing.TB, disk *disktest.Disk, folder, name string) string {
	t.Helper()
	below := filepath.Join(disk.Below, name)
	if out, err := exec.Command("cp", "-a", "--sparse=always", folder, below).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}

	return filepath.Join(disk.Dir, name)
}

// readableAt returns the texts that have no byte in the value log's block at offset.
func readableAt(t testing.TB, path string, offset int64) (left []string) {
	t.Helper()
	data := make([]byte, 1<<20)
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.ReadAt(data, 0); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}

	from := offset / disktest.BlockBytes * disktest.BlockBytes
	for _, text := range wide(60)[5:] {
		const frameHeaderBytes = 38
		i := int64(bytes.Index(data, []byte(text))) - frameHeaderBytes
		if i < 0 {
			t.Fatalf("%.9q is not in %s", text, path)
		}
		if i+frameHeaderBytes+int64(len(text)) <= from || from+disktest.BlockBytes <= i {
			left = append(left, text)
		}
	}

	return left
}

func TestABlockThatCannotBeReadLosesWhatIsInItAndNothingElse(t *testing.T) {
	disk := disktest.Mount(t)
	folders := map[bool]string{false: withBlocks(t, false), true: withBlocks(t, true)}
	for i, test := range []struct {
		file   string
		offset int64
		crash  bool
	}{
		{"gen-*/*.vlog", 0, false},
		{"gen-*/*.vlog", 100_000, false},
		{"gen-*/*.sst", 0, false},
		{"gen-*/SEAL", 0, false},
		{"gen-*/MANIFEST", 0, false},
		{"gen-*/KEYREGISTRY", 0, false},
		{"gen-*/*.vlog", 0, true},
		{"gen-*/*.vlog", 100_000, true},
		{"gen-*/*.mem", 0, true},
		{"gen-*/*.mem", 4096, true},
		{"gen-*/MANIFEST", 0, true},
		{"cursor", 0, false},
		{"cursor", 4096, false},
		{"lanes.count", 0, false},
		{"lanes/held-*", 0, false},
		{"lanes/held-*", 8192, false},
		{"LOCK", 0, false},
		{"ballast", 0, false},
	} {
		name := strings.ReplaceAll(test.file, "/", ":")
		t.Run(fmt.Sprintf("%s at %d, crash %v", name, test.offset, test.crash), func(t *testing.T) {
			dir := copyTo(t, disk, folders[test.crash], fmt.Sprint("spool-", i))
			paths, err := filepath.Glob(filepath.Join(dir, test.file))
			if err != nil || len(paths) != 1 {
				t.Fatalf("files %v (%v)", paths, err)
			}

			want := wide(60)[5:]
			switch {
			case test.file == "cursor" && test.offset == 0:
				// This is the newer slot: events acknowledged since the older one are
				// sent again.
				want = wide(60)
			case strings.HasSuffix(test.file, ".vlog"):
				want = readableAt(t, paths[0], test.offset)
			}

			disk.Break(paths[0], test.offset)
			if file, err := os.Open(paths[0]); err != nil {
				t.Fatal(err)
			} else if _, err := file.ReadAt(make([]byte, 1), test.offset); !errors.Is(err, syscall.EIO) ||
				file.Close() != nil {
				t.Fatalf("the block can be read, so the test proves nothing: %v", err)
			}

			found := wantLeft(t, dir, want)
			s := open(t, dir, generationBytes(1<<20)) // new generations are small as well
			appendAll(t, s, 7, "new")
			wantTexts(t, s, append(slices.Clone(want), "new"))
			st := s.Status()
			lost := max(0, 55-len(want))
			if int(st.Gaps+st.Uncertain) != lost+5-st.Held || st.Gaps != found.LostEvents() {
				t.Errorf("%d events are lost, the status is %+v", lost, st)
			}

			closeSpool(t, s)
			again := open(t, dir, generationBytes(1<<20))
			wantTexts(t, again, append(slices.Clone(want), "new"))
			newest, _ := again.Newest()
			ack(t, again, newest)
		})
	}
}

// wantLeft opens a folder that no spool has open. The report must count the events that are
// left, and reading must return them.
func wantLeft(t *testing.T, dir string, want []string) spool.Report {
	t.Helper()
	f, err := spool.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	r := check(t, f)
	if r.Events != len(want) {
		t.Errorf("%d events are intact, the report is %+v", len(want), r)
	}

	var whole []string
	for e, err := range f.Waiting() {
		if err != nil {
			t.Fatal(err)
		}
		whole = append(whole, string(e.Data))
	}
	if diff := cmp.Diff(want, whole); diff != "" {
		t.Errorf("intact events (-want +got):\n%s", diff)
	}
	if _, err := f.Status(t.Context()); err != nil {
		t.Error(err)
	}

	return r
}

// A block that was readable and goes bad later gives a page fault to its next reader.
// Badger cannot be closed after that, so this test runs in a process of its own.
func TestABlockThatGoesBadWhileItIsReadLosesWhatIsInItAndNothingElse(t *testing.T) {
	parts.Need(t, "root")
	if !inOwnProcess(t) {
		return
	}

	disk := disktest.Mount(t)
	dir := copyTo(t, disk, withBlocks(t, false), "spool")
	path := find(t, dir, "*.vlog")
	want := readableAt(t, path, 150_000)
	s := open(t, dir)
	first, err := s.Read(t.Context(), s.Frontier(), 1, 1)
	if err != nil || len(first) != 1 {
		t.Fatalf("%d events (%v)", len(first), err)
	}

	disk.Break(path, 150_000)
	// Opening and closing the file drops it from the page cache.
	if file, err := os.Open(path); err != nil || file.Close() != nil {
		t.Fatal(err)
	}

	appendAll(t, s, 7, "new")
	wantTexts(t, s, append(slices.Clone(want), "new"))
	if st := s.Status(); st.Gaps != uint64(55-len(want)) || st.Gaps == 0 {
		t.Errorf("%d events are lost: %+v", 55-len(want), st)
	}

	newest, _ := s.Newest()
	ack(t, s, newest)
	if st := s.Status(); st.Events != 0 || st.Bytes != 0 {
		t.Errorf("every event is acknowledged or lost, and some still wait: %+v", st)
	}

	// Badger has the folder mapped still. Where such a folder cannot be moved, the next start
	// does it.
	aside := 0
	if generation.MadeAhead {
		aside = 1
	}
	if r, err := s.Check(t.Context()); err != nil || len(r.Quarantine) != aside {
		t.Errorf("the report says %+v (%v)", r, err)
	}
}
