//go:build !race

package queue_test

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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/metrics/partstest"
	"promptspool/spool/disk/disktest"
	"promptspool/spool/queue"
)

// wide returns the texts of n events that are larger than a block.
func wide(n int) []string {
	var texts []string
	for i := range n {
		texts = append(texts, fmt.Sprintf("event %03d ", i+1)+strings.Repeat("x", 5000))
	}

	return texts
}

// The folders of withBlocks have this many events, of which the first ones are held.
const blockEvents, blockHeld = 400, 100

// deep is an offset in files of withBlocks that the kernel reads 128 KiB at a time, when it
// reads them from the start.
const deep = 400_000

// withBlocks returns the folder of a spool in which such events wait, and others are held,
// after a stop or a power cut.
func withBlocks(t testing.TB, crash bool) string {
	t.Helper()
	dir := t.TempDir()
	s := open(t, dir, generationBytes(4<<20))
	for batch := range slices.Chunk(wide(blockEvents), 20) {
		var data [][]byte
		for _, text := range batch {
			data = append(data, []byte(text))
		}
		if err := s.Append(7, data...); err != nil {
			t.Fatal(err)
		}
	}

	held, err := await(t.Context(), s, 1, blockHeld, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Hold(7, "refused", held); err != nil {
		t.Fatal(err)
	}

	ack(t, s, blockHeld)
	if err := s.SaveCursor(); err != nil {
		t.Fatal(err)
	}

	if crash {
		return copyDir(t, dir)
	}
	closeSpool(t, s)

	return dir
}

// copyTo copies a folder to a volume of which blocks can be made bad. It returns the copy.
func copyTo(t testing.TB, volume *disktest.Volume, folder, name string) string {
	t.Helper()
	dir := filepath.Join(volume.Dir, name)
	if out, err := exec.Command("cp", "-a", "--sparse=always", folder, dir).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}

	return dir
}

// readableAt returns the texts that have no byte in the value log's block at offset.
func readableAt(t testing.TB, path string, offset int64) (left []string) {
	t.Helper()
	data := make([]byte, 4<<20)
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.ReadAt(data, 0); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}

	from := offset / disktest.BlockBytes * disktest.BlockBytes
	for _, text := range wide(blockEvents)[blockHeld:] {
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
	folders := map[bool]string{false: withBlocks(t, false), true: withBlocks(t, true)}
	type bad struct {
		file   string
		offset int64
		crash  bool
	}

	// What lies deep in a file depends on the file system, and on the kernel.
	inDepth := []bad{
		{"gen-*/*.vlog", 4 * deep, false},
		{"gen-*/*.vlog", 4 * deep, true},
		{"gen-*/*.mem", 20_000, true},
		{"cursor", 4096, false},
		{"lanes/held-*", deep, false},
	}
	volumes := map[string][]bad{"xfs": inDepth, "ext4": append(inDepth,
		bad{"gen-*/*.vlog", 0, false},
		bad{"gen-*/*.sst", 0, false},
		bad{"gen-*/SEAL", 0, false},
		bad{"gen-*/MANIFEST", 0, false},
		bad{"gen-*/KEYREGISTRY", 0, false},
		bad{"gen-*/*.vlog", 0, true},
		bad{"gen-*/*.mem", 0, true},
		bad{"gen-*/MANIFEST", 0, true},
		bad{"cursor", 0, false},
		bad{"lanes.count", 0, false},
		bad{"lanes/held-*", 0, false},
		bad{"LOCK", 0, false},
	)}
	for system, blocks := range volumes {
		volume := disktest.MountVolume(t, system)
		for i, test := range blocks {
			name := fmt.Sprintf("%s %s at %d, crash %v", system, test.file, test.offset, test.crash)
			t.Run(strings.ReplaceAll(name, "/", ":"), func(t *testing.T) {
				dir := copyTo(t, volume, folders[test.crash], fmt.Sprint("spool-", i))
				losesOneBlock(t, volume, dir, test.file, test.offset)
			})
		}
	}
}

// losesOneBlock breaks the block of a file at offset, and looks at what is left.
func losesOneBlock(t *testing.T, volume *disktest.Volume, dir, file string, offset int64) {
	paths, err := filepath.Glob(filepath.Join(dir, file))
	if err != nil || len(paths) != 1 {
		t.Fatalf("files %v (%v)", paths, err)
	}

	want := wide(blockEvents)[blockHeld:]
	switch {
	case file == "cursor" && offset == 0:
		// This is the newer slot: events acknowledged since the older one are sent again.
		want = wide(blockEvents)
	case strings.HasSuffix(file, ".vlog"):
		want = readableAt(t, paths[0], offset)
	}
	volume.Break(paths[0], offset)

	found := wantLeft(t, dir, want)
	s := open(t, dir, generationBytes(1<<20)) // new generations are small
	appendAll(t, s, 7, "new")
	wantTexts(t, s, append(slices.Clone(want), "new"))
	st := s.Status()
	lost := max(0, blockEvents-blockHeld-len(want))
	if int(st.Gaps+st.Uncertain) != lost+blockHeld-st.Held || st.Gaps != found.LostEvents() {
		t.Errorf("%d events are lost, the status is %+v", lost, st)
	}
	if blockHeld-st.Held > 2 {
		t.Errorf("%d of %d events are held still, and a block has parts of 2", st.Held, blockHeld)
	}

	closeSpool(t, s)
	again := open(t, dir, generationBytes(1<<20))
	wantTexts(t, again, append(slices.Clone(want), "new"))
	newest, _ := again.Newest()
	ack(t, again, newest)

	// Nothing waits any more, and it is still known what was lost.
	r, err := again.Check(t.Context())
	if err != nil || r.EarlierEvents() != st.Gaps || !r.Sound() {
		t.Errorf("%d events were lost, the report says %+v (%v)", st.Gaps, r, err)
	}
	for _, l := range r.Earlier {
		if since := time.Since(l.FoundAt); since < 0 || since > time.Hour || l.Reason == "" {
			t.Errorf("a loss was written down as %+v", l)
		}
	}
}

// wantLeft opens a folder that no spool has open. The report must count the events that are
// left, and reading must return them.
func wantLeft(t *testing.T, dir string, want []string) queue.Report {
	t.Helper()
	f, err := queue.OpenFolder(dir)
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
	partstest.Need(t, "root")
	if !inOwnProcess(t) {
		return
	}

	volume := disktest.MountVolume(t, "ext4")
	dir := copyTo(t, volume, withBlocks(t, false), "spool")
	path := find(t, dir, "*.vlog")
	want := readableAt(t, path, 4*deep)
	s := open(t, dir)
	first, err := await(t.Context(), s, s.Frontier(), 1, 1)
	if err != nil || len(first) != 1 {
		t.Fatalf("%d events (%v)", len(first), err)
	}

	volume.Break(path, 4*deep)

	appendAll(t, s, 7, "new")
	wantTexts(t, s, append(slices.Clone(want), "new"))
	if st := s.Status(); st.Gaps != uint64(blockEvents-blockHeld-len(want)) || st.Gaps == 0 {
		t.Errorf("%d events are lost: %+v", blockEvents-blockHeld-len(want), st)
	}

	newest, _ := s.Newest()
	ack(t, s, newest)
	if st := s.Status(); st.Events != 0 || st.Bytes != 0 {
		t.Errorf("every event is acknowledged or lost, and some still wait: %+v", st)
	}

	if r, err := s.Check(t.Context()); err != nil || len(r.Quarantine) != 1 {
		t.Errorf("the report says %+v (%v)", r, err)
	}
}
