//go:build linux

package e2e

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// helperVariable turns this test binary into another process of the harness.
const helperVariable = "PROMPTSPOOL_TEST_HELPER"

// runHelper runs the process that helperVariable names to its end. It returns false in
// the process that runs the tests.
func runHelper() bool {
	switch os.Getenv(helperVariable) {
	case "":
		return false
	case "oracle":
		runOracle()
	case "pressure":
		runPressure()
	case "floor":
		runFloor()
	case "sink":
		runSink()
	case "contained":
		runContained()
	case "quadratic":
		runQuadratic()
	case "dear":
		runDear()
	case "glutton":
		runGlutton()
	case "weak":
		runWeak()
	}

	return true
}

// plainBinary is the command as it is shipped.
var plainBinary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(folder, "promptspool-plain")
	return path, ship("../../..", path)
})

// shipping is the line of the Dockerfile that builds the binary.
var shipping = regexp.MustCompile(`(?m)^ +(CGO_ENABLED=0 go build -trimpath .*) -o /promptspool (\./cmd/promptspool)`)

// ship builds the command from the source in a folder as the Dockerfile does.
func ship(source, path string) error {
	text, err := os.ReadFile(filepath.Join(source, "Dockerfile"))
	if err != nil {
		return err
	}
	line := shipping.FindSubmatch(text)
	if line == nil {
		return errors.New("the Dockerfile builds no binary")
	}
	cmd := exec.Command("sh", "-c", fmt.Sprintf(`%s -o "$0" %s`, line[1], line[2]), path)
	cmd.Dir = source
	// What the line leaves out must not come from the flags of `make test`.
	cmd.Env = append(os.Environ(), "GOFLAGS="+strings.ReplaceAll(os.Getenv("GOFLAGS"), "-trimpath", ""))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the binary does not build: %w\n%s", err, out)
	}
	return nil
}

// beginPlain starts plainBinary, also in a test that watches for races, and does not wait.
func beginPlain(t testing.TB, data, addr string, args ...string) *node {
	t.Helper()
	program, err := plainBinary()
	if err != nil {
		t.Fatal(err)
	}
	return begin(t, program, nil, data, addr, args...)
}

// startPlainServer starts a server of plainBinary on an empty folder.
func startPlainServer(t *testing.T, addr string) *node {
	t.Helper()
	n := beginPlain(t, t.TempDir(), addr, "server", "--name", "central")
	if !n.takes() {
		t.Fatal("the server does not start")
	}
	return n
}

// soakVariable makes the tests of the spool long: a time such as 10m, of which each scene
// takes its part. `make soak` sets it.
const soakVariable = "PROMPTSPOOL_SOAK"

// soak returns how long a scene with this part of the soak may take, 0 when the tests are
// short.
func soak(t *testing.T, part float64) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(cmp.Or(os.Getenv(soakVariable), "0s"))
	if err != nil {
		t.Fatalf("%s is not a time such as 10m: %v", soakVariable, err)
	}
	return time.Duration(part * float64(d))
}

// rounds counts short rounds, or as many as begin within this part of the soak.
func rounds(t *testing.T, short int, part float64) iter.Seq[int] {
	t.Helper()
	long := soak(t, part)
	begun := time.Now()
	return func(yield func(int) bool) {
		for i := 0; i < short || time.Since(begun) < long; i++ {
			if t.Failed() || !yield(i) {
				return
			}
		}
	}
}
