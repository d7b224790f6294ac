package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFolderIsNotLeft(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret.yaml")
	if err := os.WriteFile(outside, []byte("content: a secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	withoutVariables(t)
	if got := say(t, "templates", "push", dir, "--key", "k"); got.Code != 1 || !strings.Contains(got.Err, "escapes") {
		t.Errorf("%+v", got)
	}
}
