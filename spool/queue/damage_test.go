package queue_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"promptspool/spool/queue"
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

// fault is one thing that is wrong with a spool of ten events, and what is left of them.
type fault struct {
	name   string
	from   string // which of folders is damaged
	damage func(testing.TB, string)
	want   []string

	uncertain int // how many of the missing events may never have been acknowledged
}

// lost returns how many of the ten events must be counted as lost.
func (f fault) lost() uint64 { return uint64(10 - len(f.want) - f.uncertain) }

// folders are the folders of faults, by how they came about. They are made once.
type folders map[string]string

func makeFolders(t testing.TB) folders {
	return folders{"crashed": crashed(t), "closed": closed(t)}
}

// damaged returns a copy of its folder with the fault.
func (f fault) damaged(t testing.TB, from folders) string {
	t.Helper()
	dir := copyDir(t, from[f.from])
	f.damage(t, dir)

	return dir
}

// faults returns every single fault that a spool must survive.
func faults() []fault {
	remove := func(pattern string) func(testing.TB, string) {
		return func(t testing.TB, dir string) {
			t.Helper()
			files, _ := filepath.Glob(filepath.Join(generationFolders(t, dir)[0], pattern))
			if len(files) == 0 {
				t.Fatalf("no %s in %s", pattern, dir)
			}
			for _, f := range files {
				if err := os.Remove(f); err != nil {
					t.Fatal(err)
				}
			}
		}
	}

	flipped := func(pattern string, offset func([]byte) int) func(testing.TB, string) {
		return func(t testing.TB, dir string) { t.Helper(); flip(t, dir, pattern, offset) }
	}

	all := numbered(10)

	return []fault{
		{"crashed, nothing damaged", "crashed", func(testing.TB, string) {}, all, 0},
		{"crashed, payload in the value log", "crashed", flipped("*.vlog", at("event 4", 6)), without(10, 4), 0},
		{"crashed, last payload in the value log", "crashed",
			flipped("*.vlog", at("event 10", 6)), without(10, 10), 1},
		{"crashed, Badger's own checksum in the value log", "crashed", flipped("*.vlog", at("event 4", 8)), all, 0},
		{"crashed, header of the value log's first entry", "crashed", flipped("*.vlog", byteAt(22)), all, 0},
		{"crashed, header of the value log", "crashed", flipped("*.vlog", byteAt(2)), all, 0},
		{"crashed, header of the write-ahead log", "crashed", flipped("*.mem", byteAt(2)), all, 0},
		{"crashed, first key in the write-ahead log", "crashed", flipped("*.mem", inLog(1)), all, 0},
		{"crashed, middle key in the write-ahead log", "crashed", flipped("*.mem", inLog(5)), all, 0},
		{"crashed, last key in the write-ahead log", "crashed", flipped("*.mem", inLog(10)), all, 0},
		{"crashed, write-ahead log removed", "crashed", remove("*.mem"), all, 0},
		{"crashed, value log removed", "crashed", remove("*.vlog"), without(10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10), 1},
		{"crashed, MANIFEST removed", "crashed", remove("MANIFEST"), all, 0},
		{"closed, payload in the value log", "closed", flipped("*.vlog", at("event 4", 6)), without(10, 4), 0},
		{"closed, Badger's own checksum in the value log", "closed", flipped("*.vlog", at("event 4", 8)), all, 0},
		{"closed, length in Badger's header around a frame", "closed",
			flipped("*.vlog", at("event 1", -38-eventKeyBytes-8-2)), all, 0},
		{"closed, Badger's key beside the last frame", "closed", flipped("*.vlog", at("event 10", -38-20)), all, 0},
		{"closed, header of the value log's first entry", "closed", flipped("*.vlog", byteAt(22)), all, 0},
		{"closed, header of the value log", "closed", flipped("*.vlog", byteAt(2)), all, 0},
		{"closed, value log cut in the middle", "closed",
			func(t testing.TB, dir string) { cutAt(t, dir, "event 6") }, numbered(5), 0},
		{"closed, value log removed", "closed", remove("*.vlog"), without(10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10), 0},
		{"closed, table", "closed", flipped("*.sst", byteAt(40)), all, 0},
		{"closed, table cut", "closed", func(t testing.TB, dir string) { cut(t, dir, "*.sst", 251) }, all, 0},
		{"closed, SEAL", "closed", flipped("SEAL", byteAt(7)), all, 0},
		{"closed, SEAL removed", "closed", remove("SEAL"), all, 0},
		{"closed, table removed", "closed", remove("*.sst"), all, 0},
		{"closed, MANIFEST removed", "closed", remove("MANIFEST"), all, 0},
		{"closed, MANIFEST", "closed", flipped("MANIFEST", byteAt(1)), all, 0},
		{"closed, key registry", "closed", flipped("KEYREGISTRY", byteAt(20)), all, 0},
		{"closed, generation removed", "closed",
			func(t testing.TB, dir string) { os.RemoveAll(generationFolders(t, dir)[0]) },
			without(10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10), 0},
	}
}

func TestAfterOneFaultWhatIsMissingIsCounted(t *testing.T) {
	from := makeFolders(t)
	for _, test := range faults() {
		t.Run(test.name, func(t *testing.T) {
			dir := test.damaged(t, from)
			s := open(t, dir)
			appendAll(t, s, 7, "new")
			wantTexts(t, s, append(slices.Clone(test.want), "new"))
			st := s.Status()
			if st.Gaps != test.lost() || st.Uncertain != uint64(test.uncertain) ||
				st.Next != uint64(12-test.uncertain) {
				t.Errorf("%d events are lost and %d uncertain; counted were %d and %d; next is %d",
					test.lost(), test.uncertain, st.Gaps, st.Uncertain, st.Next)
			}
			closeSpool(t, s)

			again := open(t, dir)
			wantTexts(t, again, append(slices.Clone(test.want), "new"))
			if st := again.Status(); st.Gaps != test.lost() || st.Uncertain != 0 {
				t.Errorf("opened again, %d events are lost; counted were %d, and %d uncertain",
					test.lost(), st.Gaps, st.Uncertain)
			}
			ack(t, again, uint64(11-test.uncertain))
		})
	}
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

// A rebuild gives the new edition its name before it removes the old one. If the power
// fails in between, the next start finds both.
func TestAnOlderEditionThatHoldsNothingMoreIsRemoved(t *testing.T) {
	damageKey := func(t testing.TB, dir string) { flip(t, dir, "*.mem", inLog(5)) }
	damageEvent := func(t testing.TB, dir string) { flip(t, dir, "*.vlog", at("event 4", 6)) }
	for name, scene := range map[string]struct {
		damage func(testing.TB, string)
		want   []string
		kept   int
	}{
		"nothing is missing": {damageKey, numbered(10), 0},
		"an event is":        {damageEvent, without(10, 4), 2},
	} {
		t.Run(name, func(t *testing.T) {
			dir := crashed(t)
			scene.damage(t, dir)
			old := generationFolders(t, dir)[0]
			copied := filepath.Join(t.TempDir(), "old")
			out, err := exec.Command("cp", "-a", "--sparse=always", old, copied).CombinedOutput()
			if err != nil {
				t.Fatal(err, string(out))
			}

			s, err := tryOpen(dir)
			if err != nil {
				t.Fatal(err)
			}
			closeSpool(t, s)
			if err := os.Rename(copied, old); err != nil {
				t.Fatal(err)
			}

			found, _ := checkDir(t, dir)
			plan := queue.PlanRemove
			if scene.kept > 0 {
				plan = queue.PlanQuarantine
			}
			last := found.Generations[len(found.Generations)-1]
			if last.Name != filepath.Base(old) || last.Plan != plan {
				t.Errorf("the check reports the old edition as %+v, want the plan %q", last, plan)
			}

			s = open(t, dir)
			wantTexts(t, s, scene.want)

			aside, _ := filepath.Glob(filepath.Join(dir, "quarantine", "gen-*"))
			if _, err := os.Stat(old); !os.IsNotExist(err) || len(aside) != scene.kept {
				t.Errorf("the old edition: %v; in quarantine: %v", err, aside)
			}
		})
	}
}
