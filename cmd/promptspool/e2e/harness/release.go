//go:build linux

package harness

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// releasesDir has a folder for each release, as a room sees it.
const releasesDir = "../releases/testdata"

// Release is the binary of an earlier version.
type Release struct {
	Version string
	Program string
}

// earlier holds the programs of Releases.
var earlier sync.Map

// Releases returns the binary of each release, by the order of their names. It fails in a clone without their
// commits: a test of what two versions say to each other means nothing with one of them.
func Releases(t *testing.T) (all []Release) {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(releasesDir, "*"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("there is no release in %s: %v", releasesDir, err)
	}
	shown, _ := Run(t, 0, "version", "-o", "json")

	for _, dir := range dirs {
		version := filepath.Base(dir)
		text, err := os.ReadFile(filepath.Join(dir, "commit"))
		if errors.Is(err, fs.ErrNotExist) && version == Decode(shown)["version"] {
			continue // this version, which is yet to be released
		}
		if err != nil {
			t.Fatal(err)
		}
		commit := strings.TrimSpace(string(text))
		program, err := copyOf("promptspool-"+version+"-"+commit, func(path string) error {
			return buildRelease(version, commit, path)
		})
		if err != nil {
			t.Fatal(err)
		}
		earlier.Store(program, true)
		all = append(all, Release{version, program})
	}
	return all
}

// buildRelease builds a release from its commit, unless that was done: a commit does not change.
func buildRelease(version, commit, path string) error {
	if out, err := exec.Command("git", "-C", Top, "cat-file", "-e", commit+"^{commit}").CombinedOutput(); err != nil {
		return fmt.Errorf("release %s is built from its commit %s, which this clone does not have. "+
			"Clone the whole history, or run `git fetch --unshallow`. %s", version, commit, out)
	}
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	source, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(source)

	archive := filepath.Join(source, "source.tar")
	for _, step := range [][]string{
		{"git", "-C", Top, "archive", "--output", archive, commit},
		{"tar", "-xf", archive, "-C", source},
	} {
		if out, err := exec.Command(step[0], step[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w\n%s", step, err, out)
		}
	}

	// A build that is cut short must not be taken for the release.
	whole := path + ".new"
	if err := Ship(source, whole, "VERSION="+version, "COMMIT="+commit); err != nil {
		return err
	}
	return os.Rename(whole, path)
}
