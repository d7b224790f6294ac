package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestEveryPlatformCompiles type-checks the program and its tests for each system on which
// they are not run, and for another processor.
//
// To compile for a platform means to compile all of the standard library and all modules
// for it, first: two minutes of processor time where nothing is cached. This reads them
// instead, without the bodies of their functions. `make release-check` compiles for all.
func TestEveryPlatformCompiles(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}

	// The commands of other tests have set the limits of their processes.
	limit := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(limit)

	parsed := &parsedFiles{root: root}
	for _, platform := range []string{"darwin/arm64", "windows/amd64"} {
		t.Run(platform, func(t *testing.T) {
			checked, faults := typeCheck(t, parsed, platform)
			for _, fault := range faults {
				t.Error(fault)
			}
			if checked < 40 {
				t.Errorf("only %d packages were checked", checked)
			}
		})
	}
}

// TestWhatOnePlatformLacksIsFound is the control: a file that is for one platform only, and
// uses what that platform does not have.
func TestWhatOnePlatformLacksIsFound(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":             "module example\n\ngo 1.25\n",
		"disk.go":            "package disk\n",
		"disk_windows.go":    "package disk\n\nimport \"syscall\"\n\nvar _ = syscall.Fallocate\n",
		"disk_linux.go":      "package disk\n\nimport \"syscall\"\n\nvar _ = syscall.Fallocate\n",
		"disk_test.go":       "package disk\n",
		"size_arm64.go":      "package disk\n\nconst size = 8\n",
		"size_arm64_test.go": "package disk\n\nvar _ int32 = 1 << (size * 5)\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	for platform, want := range map[string]string{
		"linux/amd64":   "",
		"linux/arm64":   "overflow",
		"windows/amd64": "undefined: syscall.Fallocate",
	} {
		_, faults := typeCheck(t, &parsedFiles{root: dir}, platform)
		if got := strings.Join(faults, "\n"); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: found %q, want %q", platform, got, want)
		}
	}
}

// typeCheck reports how many packages of a module there are on a platform, including those
// of tests, and what is wrong with them.
func typeCheck(t *testing.T, parsed *parsedFiles, platform string) (checked int, faults []string) {
	t.Helper()
	system, processor, _ := strings.Cut(platform, "/")
	config := &packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedDeps | packages.NeedModule | packages.NeedSyntax | packages.NeedTypes |
			packages.NeedTypesSizes,
		Dir:       parsed.root,
		Env:       append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0", "GOFLAGS=-trimpath"),
		Tests:     true,
		Fset:      &parsed.positions,
		ParseFile: parsed.parse,
	}

	found, err := packages.Load(config, "./...")
	if err != nil {
		t.Fatal(err)
	}

	for _, p := range found {
		if strings.HasSuffix(p.ID, ".test") { // the program that go test makes of the tests
			continue
		}

		checked++
		for _, e := range p.Errors {
			faults = append(faults, e.Error())
		}
	}
	return checked, faults
}

// parsedFiles are the files of a module and of what it imports. Platforms have most of them in
// common.
type parsedFiles struct {
	root      string
	positions token.FileSet
	files     sync.Map // by name
}

// parse returns a file. What is not ours has only the declarations of functions: what they
// import seems unused then, but only our own packages are looked at.
func (p *parsedFiles) parse(positions *token.FileSet, name string, source []byte) (*ast.File, error) {
	if file, ok := p.files.Load(name); ok {
		return file.(*ast.File), nil
	}

	file, err := parser.ParseFile(positions, name, source, parser.SkipObjectResolution)
	if err != nil {
		return file, err
	}
	if !strings.HasPrefix(name, p.root+string(filepath.Separator)) {
		dropBodies(file)
	}
	p.files.Store(name, file)

	return file, nil
}

func dropBodies(file *ast.File) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			f.Body = nil
		}
	}
}
