//go:build linux && soak

package releases

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

// The answers of a release are its own: its binary gives them when it opens what it left. With -update it is
// asked again, and may then be asked more; what it left stays as it is.
func TestAReleaseAnswersWhatItAnswered(t *testing.T) {
	for _, release := range harness.Releases(t) {
		dir := filepath.Join("testdata", release.Version)
		more := filepath.Join(dir, moreDir)
		if _, err := os.Stat(more); *update && errors.Is(err, fs.ErrNotExist) {
			writeMore(t, release.Program, more)
		}
		for dir, all := range map[string]asking{dir: firstAsked, more: moreAsked} {
			for _, name := range []string{serverSaid, dumpSaid} {
				was := read[said](t, dir, name)
				is := asked(t, release.Program, dir, name, all)
				is.ScoringKey = was.ScoringKey
				equal(t, was.Answers, is.Answers)
				equal(t, was.Packed, is.Packed)
				equal(t, was.Deletions, is.Deletions)
				if *update {
					keepJSON(t, dir, name, is)
				}
			}

			data := filepath.Join(t.TempDir(), "restored")
			says(t, release.Program, "restore", "--data", data, filepath.Join(dir, backupFile))
			server := startOf(t, release.Program, data, "127.0.0.1:0", "server", "--name", "central")
			equal(t, read[said](t, dir, serverSaid).Answers, askAll(t, server, all.questions))
			for _, s := range spelt {
				page := decoded(t, ask(t, server, finding(s.word)[0])).(map[string]any)
				if got := fmt.Sprint(page["total"]); dir == more && got != fmt.Sprint(2*s.was) {
					t.Errorf("%q found %s calls of %d", s.word, got, 2*s.was)
				}
			}
		}
	}
}

// equal fails unless the answers to the same questions are the same. With -update alone there may be other questions.
func equal(t *testing.T, was, is []answered) {
	t.Helper()
	known := map[string]answered{}
	for _, a := range is {
		known[a.Question] = a
	}
	for _, a := range was {
		if _, ok := known[a.Question]; !ok && *update {
			continue
		}
		now, before := decoded(t, known[a.Question].Answer), decoded(t, a.Answer)
		if what := missing(before, now, []string{"gone_by"}) + missing(now, before, []string{"gone_by"}); what != "" {
			t.Errorf("%s: the release answered otherwise at %s", a.Question, what)
		}
	}
	if len(was) != len(is) && !*update {
		t.Errorf("%d questions are recorded of %d: run this with -update", len(was), len(is))
	}
}
