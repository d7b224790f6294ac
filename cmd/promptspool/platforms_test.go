//go:build !race

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestEveryPlatformCompiles type-checks the program and its tests for the platforms that
// `make cross` does not vet.
//
// To compile for a platform means to compile all of the standard library and all modules
// for it, first: two minutes of processor time where nothing is cached. This reads them
// instead, without the bodies of their functions.
func TestEveryPlatformCompiles(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}

	for _, platform := range []string{"linux/arm64", "darwin/amd64", "windows/arm64"} {
		t.Run(platform, func(t *testing.T) {
			checked, faults := typeCheck(t, root, platform)
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
		_, faults := typeCheck(t, dir, platform)
		if got := strings.Join(faults, "\n"); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: found %q, want %q", platform, got, want)
		}
	}
}

// typeCheck reports how many packages of a module there are on a platform, including those
// of tests, and what is wrong with them.
func typeCheck(t *testing.T, root, platform string) (checked int, faults []string) {
	t.Helper()
	system, processor, _ := strings.Cut(platform, "/")
	config := &packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedDeps | packages.NeedModule | packages.NeedSyntax | packages.NeedTypes |
			packages.NeedTypesSizes,
		Dir:   root,
		Env:   append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0", "GOFLAGS=-trimpath"),
		Tests: true,
		ParseFile: func(files *token.FileSet, name string, source []byte) (*ast.File, error) {
			file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
			if file != nil && !strings.HasPrefix(name, root+string(filepath.Separator)) {
				dropBodies(file)
			}
			return file, err
		},
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

// dropBodies leaves only the declarations of functions. What they import seems unused then,
// but only our own packages are looked at.
func dropBodies(file *ast.File) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			f.Body = nil
		}
	}
}
