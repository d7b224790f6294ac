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

// A binary that names no folder is the same wherever it is built. `make release-check` builds
// everything in two folders and compares it.
func TestTheBinaryDoesNotNameTheFolderWhereItWasBuilt(t *testing.T) {
	t.Parallel()
	path, err := harness.PlainBinary()
	if err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs(harness.Top)
	if err != nil {
		t.Fatal(err)
	}
	built := contentOf(t, path)
	for _, folder := range []string{here, strings.TrimSpace(harness.Tool(t, "go", "env", "GOMODCACHE"))} {
		if bytes.Contains(built, []byte(folder)) {
			t.Errorf("it holds the name of a folder of this machine, %s", folder)
		}
	}

	// A laptop downloads it, and a node of a cluster with each pod.
	const most = 45 << 20
	if len(built) > most {
		t.Errorf("it has %d bytes, more than %d", len(built), most)
	}

	// What is compiled as usual names its folder.
	main := harness.WriteFile(t, "main.go", "package main\n\nfunc main() {}\n")
	harness.Tool(t, "go", "tool", "compile", "-p", "main", "-o", main+".o", main)
	if folder := filepath.Dir(main); !bytes.Contains(contentOf(t, main+".o"), []byte(folder)) {
		t.Errorf("%s is not found in what was compiled there, so nothing would be found", folder)
	}
}

func contentOf(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// The image is built with the Go that go.mod names: inside it, no other one is fetched.
func TestTheImageIsBuiltWithTheGoThatIsPinned(t *testing.T) {
	dockerfile := contentOf(t, harness.Top+"/Dockerfile")
	out, err := exec.Command("go", "mod", "edit", "-print", harness.Top+"/go.mod").Output()
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
