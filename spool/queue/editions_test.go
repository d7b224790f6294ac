package queue_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"promptspool/spool/queue"
)

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
