//go:build linux

package harness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"promptspool/metrics/partstest"
)

// NPMModules returns a folder with the files of dir, and as node_modules what its
// package-lock.json pins. That is installed once, into the user's cache folder; no script
// of a package is run.
func NPMModules(t *testing.T, dir string) string {
	t.Helper()
	partstest.Need(t, "node", "npm")
	lock, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}

	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}

	sum := sha256.Sum256(lock)
	folder := filepath.Join(cache, "promptspool-npm", hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(folder); err != nil {
		install(t, dir, folder)
	}

	work := t.TempDir()
	if err := os.CopyFS(work, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(folder, "node_modules"), filepath.Join(work, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return work
}

// install fills folder, which appears whole or not at all.
func install(t *testing.T, dir, folder string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		t.Fatal(err)
	}
	half, err := os.MkdirTemp(filepath.Dir(folder), "half-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(half)

	if err := os.CopyFS(half, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	npm := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	npm.Dir = half
	if out, err := npm.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s\nAs root on Debian, .ci/install installs npm.", err, out)
	}

	if err := os.Rename(half, folder); err != nil {
		if _, missing := os.Stat(folder); missing != nil { // or another test was first
			t.Fatal(err)
		}
	}
}
