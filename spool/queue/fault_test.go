//go:build !race

package queue_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"promptspool/spool/queue"
)

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

func TestCheckFindsWhatIsLostAndRepairAgrees(t *testing.T) {
	from := makeFolders(t)
	for _, test := range faults() {
		t.Run(test.name, func(t *testing.T) {
			dir, lost := test.damaged(t, from), test.lost()

			found, whole := checkDir(t, dir)
			if diff := cmp.Diff(test.want, whole); len(test.want)+len(whole) > 0 && diff != "" {
				t.Errorf("intact events (-want +got):\n%s", diff)
			}
			if found.LostEvents() != lost || found.Sound() != (lost == 0) || found.Events != len(test.want) ||
				found.Uncertain != test.uncertain || found.Next != uint64(11-test.uncertain) {
				t.Errorf("%d events are lost; the report is %+v", lost, found)
			}

			if _, err := queue.Repair(t.Context(), queue.Config{Dir: dir, Logger: quiet()}); err != nil {
				t.Fatal(err)
			}

			repaired, whole := checkDir(t, dir)
			if diff := cmp.Diff(test.want, whole); len(test.want)+len(whole) > 0 && diff != "" {
				t.Errorf("intact events after the repair (-want +got):\n%s", diff)
			}
			if repaired.Work() || repaired.LostEvents() != lost {
				t.Errorf("after the repair the report is %+v", repaired)
			}
			wantPlans(t, found, repaired)

			s := open(t, dir)
			if diff := cmp.Diff(test.want, waiting(t, s)); len(test.want) > 0 && diff != "" {
				t.Errorf("opened again (-want +got):\n%s", diff)
			}
			if st := s.Status(); st.Gaps != lost {
				t.Errorf("%d events are lost; opened again, the status is %+v", lost, st)
			}
		})
	}
}

// wantPlans compares what Repair did with the one generation of a fault with what Check had
// announced.
func wantPlans(t *testing.T, before, after queue.Report) {
	t.Helper()
	if len(before.Generations) == 0 {
		return // it was removed by the fault
	}

	planned, left := before.Generations[0], ""
	if len(after.Generations) > 0 {
		left = after.Generations[0].Name
	}
	want, quarantined := planned.Name, 0

	switch planned.Plan {
	case queue.PlanRebuild:
		want += ".1"
		if planned.Damaged > 0 {
			quarantined = 1
		}
	case queue.PlanQuarantine:
		want, quarantined = "", 1
	case queue.PlanRemove:
		want = ""
	}

	if left != want || len(after.Quarantine) != quarantined {
		t.Errorf("the plan was %q; now there is generation %q, and in quarantine %q",
			planned.Plan, left, after.Quarantine)
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

// TestAnyOneFaultIsCounted flips a bit of any file of the spool, truncates it or removes
// it. The spool must open, take new events, and count what it lost.
func TestAnyOneFaultIsCounted(t *testing.T) {
	limitChecks(t, 20)
	folders := []string{crashed(t), closed(t), withLanes(t)}

	rapid.Check(t, func(rt *rapid.T) {
		folder := rapid.SampledFrom(folders).Draw(rt, "folder")
		events := 10
		if folder == folders[2] {
			events = 7 // in the lanes
		}

		dir := copyDir(t, folder)
		damageAny(rt, dir)
		s, err := tryOpen(dir)
		if err != nil {
			rt.Fatal(err)
		}
		defer s.Close()
		if err := s.Append(7, []byte("new")); err != nil {
			rt.Fatal(err)
		}

		read := len(readAll(t, s)) - 1
		if st := s.Status(); read+st.Held+st.Dead+int(st.Gaps+st.Uncertain) != events || st.Uncertain > 1 {
			rt.Fatalf("of %d events %d are left, %d are counted as lost and %d as uncertain",
				events, read+st.Held+st.Dead, st.Gaps, st.Uncertain)
		}
	})
}

// damageAny damages one file. It damages a large file near the beginning, where the data
// is.
func damageAny(t *rapid.T, dir string) {
	files := []string{filepath.Join(dir, "cursor"), filepath.Join(dir, "lanes.count")}
	for _, folder := range []string{"gen-*", "lanes"} {
		more, err := filepath.Glob(filepath.Join(dir, folder, "*"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
	}

	file := rapid.SampledFrom(files).Draw(t, "file")
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	offset := rapid.Int64Range(0, max(0, min(info.Size(), 2000)-1)).Draw(t, "offset")

	switch rapid.SampledFrom([]string{"flip", "cut", "remove"}).Draw(t, "fault") {
	case "flip":
		err = flipBit(file, offset, rapid.IntRange(0, 7).Draw(t, "bit"))
	case "cut":
		err = os.Truncate(file, offset)
	case "remove":
		err = os.Remove(file)
	}

	if err != nil && !strings.Contains(err.Error(), "EOF") { // an empty file has no bit to flip
		t.Fatal(err)
	}
}
