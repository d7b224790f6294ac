package partstest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

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
