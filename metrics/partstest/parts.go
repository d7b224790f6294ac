// Package partstest lets tests name what they need beyond Go: a program such as chromium, or
// the rights of root.
//
// A test whose part is absent fails. Only `make test`, on a machine where it may not install
// the part, leaves such tests out, and its last line says so.
package partstest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The environment in which `make test` runs the tests: the parts that are absent, separated
// by spaces, and the file that lists the tests that were left out, one a line.
const (
	absentVariable = "PROMPTSPOOL_ABSENT"
	listVariable   = "PROMPTSPOOL_LEFT_OUT"
)

// Need leaves a test out if `make test` said that one of the parts is absent.
func Need(t testing.TB, parts ...string) {
	t.Helper()
	absent := strings.Fields(os.Getenv(absentVariable))
	for _, part := range parts {
		if !slices.Contains(absent, part) {
			continue
		}

		// Unless it is listed, it would go unnoticed.
		if err := list(t.Name() + " needs " + part); err != nil {
			t.Fatalf("%s is absent, and the test cannot be listed in %s: %v", part, listVariable, err)
		}
		t.Skip("left out: " + part + " is absent")
	}
}

// list adds a line to the list of the tests that were left out. Several processes write it.
func list(line string) error {
	f, err := os.OpenFile(os.Getenv(listVariable), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, line)

	return err
}

// Tools returns the path of the program cmd/promptspool/e2e/tools, which Go builds and caches. It does what
// takes modules that the program itself does not use. They are modules of cmd/promptspool/e2e alone.
var Tools = sync.OnceValues(func() (string, error) {
	module, err := moduleDir()
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "tool", "-n", "promptspool/cmd/promptspool/e2e/tools")
	build.Dir = module
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	path, err := build.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return "", fmt.Errorf("%s does not build: %w: %s", module, err, exit.Stderr)
	}

	return strings.TrimSpace(string(path)), err
})

// moduleDir returns the folder of the module cmd/promptspool/e2e. Tests run in the folder of their package.
func moduleDir() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		module := filepath.Join(dir, "cmd/promptspool/e2e")
		if _, err := os.Stat(filepath.Join(module, "go.mod")); err == nil {
			return module, nil
		}
		if dir == filepath.Dir(dir) {
			err = errors.New("the module cmd/promptspool/e2e is not above the test")
		}
		dir = filepath.Dir(dir)
	}

	return "", err
}
