//go:build linux

package install

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

// Every build of the same source gives the same bytes, in whatever folder.
func TestTheBinaryIsTheSameWhereverItIsBuilt(t *testing.T) {
	t.Parallel()
	here, err := harness.PlainBinary()
	if err != nil {
		t.Fatal(err)
	}
	built, err := os.ReadFile(here)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	source := []string{"-r", "../../../../Dockerfile", "../../../../go.mod", "../../../../go.sum"}
	for _, d := range strings.Fields("cmd proxy spool api registry metrics") {
		source = append(source, "../../../../"+d)
	}
	harness.Tool(t, "cp", append(source, dir)...)
	path := filepath.Join(dir, "promptspool")
	if err := harness.Ship(dir, path); err != nil {
		t.Fatal(err)
	}
	again, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(again, []byte(dir)) {
		t.Errorf("it holds the name of the folder where it was built, %s", dir)
	}
	if !bytes.Equal(again, built) {
		t.Error("the same source, built in two folders, makes two binaries")
	}

	// A laptop downloads it, and a node of a cluster with each pod.
	const most = 45 << 20
	if len(built) > most {
		t.Errorf("it has %d bytes, more than %d", len(built), most)
	}

	// With -trimpath=false, the folder's name is found.
	dir = t.TempDir()
	main := filepath.Join(dir, "main.go")
	if err := os.WriteFile(main, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "main")
	harness.Tool(t, "go", "build", "-trimpath=false", "-o", other, main)
	binary, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(binary, []byte(dir)) {
		t.Errorf("%s is not found in a binary that was built there, so nothing would be found", dir)
	}
}

// The image is built with the Go that go.mod names: inside it, no other one is fetched.
func TestTheImageIsBuiltWithTheGoThatIsPinned(t *testing.T) {
	dockerfile, err := os.ReadFile("../../../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "mod", "edit", "-print", "../../../../go.mod").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, version, pinned := strings.Cut(string(out), "\ntoolchain go")
	version, _, _ = strings.Cut(version, "\n")
	if !pinned || !strings.Contains(string(dockerfile), " golang:"+version+"-bookworm@") {
		t.Errorf("go.mod pins Go %q, and the Dockerfile says:\n%s", version, dockerfile)
	}

	// A tag may be another image tomorrow.
	bases := regexp.MustCompile(`(?m)^FROM .*`).FindAllString(string(dockerfile), -1)
	byDigest := regexp.MustCompile(`^FROM (--platform=\S+ )?[a-z0-9./-]+:[\w.-]+@sha256:[0-9a-f]{64}( AS build)?$`)
	for _, base := range bases {
		if !byDigest.MatchString(base) {
			t.Errorf("%s: the base has no digest", base)
		}
	}
	if len(bases) != 2 {
		t.Errorf("the bases are %q, want two", bases)
	}
}
