package queue_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// find returns the first file in dir's first generation that matches the pattern.
func find(t testing.TB, dir, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(generationFolders(t, dir)[0], pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no %s in %s: %v", pattern, dir, err)
	}

	return files[0]
}

// flip inverts one bit of a file in dir's first generation. It finds the byte by passing
// the file's first MiB to offset.
func flip(t testing.TB, dir, pattern string, offset func(data []byte) int) {
	t.Helper()
	path := find(t, dir, pattern)
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	data := make([]byte, 1<<20)
	n, _ := file.ReadAt(data, 0)
	if err := flipBit(path, int64(offset(data[:n])), 4); err != nil {
		t.Fatal(err)
	}
}

// cut truncates a file in dir's first generation.
func cut(t testing.TB, dir, pattern string, size int64) {
	t.Helper()
	if err := os.Truncate(find(t, dir, pattern), size); err != nil {
		t.Fatal(err)
	}
}

// cutAt truncates the first generation's value log where text begins.
func cutAt(t testing.TB, dir, text string) {
	t.Helper()
	data, err := os.ReadFile(find(t, dir, "*.vlog"))
	if err != nil {
		t.Fatal(err)
	}
	cut(t, dir, "*.vlog", int64(at(text, 0)(data)))
}

// eventKeyBytes is the length of a key in Badger (package frame), without the 8 bytes of
// version after it.
const eventKeyBytes = 28

// at finds the place of text in a file, moved by some bytes.
func at(text string, moved int) func([]byte) int {
	return func(data []byte) int { return placeOf(data, text) + moved }
}

// byteAt chooses the byte at an offset, whatever the file holds.
func byteAt(offset int) func([]byte) int { return func([]byte) int { return offset } }

// placeOf finds the text of an event of numbered in a file. The byte after "event 1" may
// happen to be a digit, so that it looks like "event 12"; the real one comes later.
func placeOf(data []byte, text string) int {
	first := bytes.Index(data, []byte(text))
	if first < 0 || len(text) == len("event 1") {
		return first
	}

	// bytes.LastIndex looks at each byte by itself, and the race detector at each look.
	if later := placeOf(data[first+1:], text); later >= 0 {
		return first + 1 + later
	}

	return first
}

// inLog finds the key of an event in a write-ahead log.
func inLog(seq byte) func([]byte) int {
	return func(data []byte) int { return bytes.Index(data, []byte{0, 0, 0, 0, 0, 0, 0, seq, 0, 0, 0, 1}) }
}

// without returns numbered(n) without the lost ones.
func without(n int, lost ...int) []string {
	texts := numbered(n)
	slices.Sort(lost)
	for _, l := range slices.Backward(lost) {
		texts = slices.Delete(texts, l-1, l)
	}

	return texts
}

// crashed returns the folder of a spool as ten appends and then a power cut leave it. Its
// generation is small, because most faults make the spool search every byte of it.
func crashed(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	appendAll(t, open(t, dir, generationBytes(1<<20)), 7, numbered(10)...)
	return copyDir(t, dir)
}

// closed returns the folder of a spool that was closed after ten appends.
func closed(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	s := open(t, dir, generationBytes(1<<20))
	appendAll(t, s, 7, numbered(10)...)
	closeSpool(t, s)

	return dir
}

func TestATornCommitIsNoLoss(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, generationBytes(16<<20))
	appendAll(t, s, 7, numbered(3)...)
	large := bytes.Repeat([]byte("x"), 7<<20)
	before := copyDir(t, dir)
	appendAll(t, s, 7, string(large))

	// The power failed when the value log had reached the large event's second frame, and
	// the write-ahead log none of it.
	written := copyDir(t, dir)
	cut(t, written, "*.vlog", 5<<20)
	if err := os.Rename(find(t, before, "*.mem"), find(t, written, "*.mem")); err != nil {
		t.Fatal(err)
	}
	after := open(t, written)
	wantTexts(t, after, numbered(3))
	if st := after.Status(); st.Gaps != 0 || st.Next != 4 {
		t.Errorf("status %+v", st)
	}
}

func TestADamagedCursorIsNoAlarm(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"removed": os.Remove,
		"cut":     func(path string) error { return os.Truncate(path, 10) },
		"zeroed":  func(path string) error { return os.WriteFile(path, make([]byte, 8192), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir, generationBytes(900))
			appendAll(t, s, 7, numbered(20)...)
			ack(t, s, 12)
			closeSpool(t, s)
			if err := damage(filepath.Join(dir, "cursor")); err != nil {
				t.Fatal(err)
			}

			s = open(t, dir)
			if st := s.Status(); st.Gaps != 0 || st.Frontier > 13 || st.Next != 21 {
				t.Errorf("status %+v", st)
			}
			all := texts(readAll(t, s))
			if len(all) < 8 || all[len(all)-1] != "event 20" {
				t.Errorf("read %q", all)
			}
		})
	}
}

func TestSequencesAreNotGivenOutTwiceAfterTheCursorIsLost(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, generationBytes(900))
	appendAll(t, s, 7, numbered(20)...)
	ack(t, s, 20)
	closeSpool(t, s)
	closeSpool(t, open(t, dir))
	if err := os.Remove(filepath.Join(dir, "cursor")); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if st := s.Status(); st.Next != 21 {
		t.Fatalf("status %+v", st)
	}
}

// flipBit inverts one bit of a file.
func flipBit(path string, offset int64, bit int) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	b := make([]byte, 1)
	if _, err := file.ReadAt(b, offset); err != nil {
		return err
	}
	b[0] ^= 1 << bit
	_, err = file.WriteAt(b, offset)

	return err
}
