//go:build linux

package harness

import (
	"fmt"
	"net/http"
	"os"
	"sync"
)

// HelperVariable makes this test binary a helper process: it names which.
const HelperVariable = "PROMPTSPOOL_TEST_HELPER"

// AdminKey is a key of the account default, made by PROMPTSPOOL_BOOTSTRAP_KEY.
const AdminKey = "a-bootstrap-key-of-more-than-thirty-two-characters"

// atEnd is what AtEnd is given.
var atEnd struct {
	sync.Mutex
	calls []func()
}

// AtEnd calls a function when all tests have run.
func AtEnd(f func()) {
	atEnd.Lock()
	defer atEnd.Unlock()
	atEnd.calls = append(atEnd.calls, f)
}

// Main runs the tests of a room, and then exits. In a process that a test has started with
// HelperVariable, it runs the helper of that name instead.
func Main(run func() int, helpers map[string]func()) {
	if name := os.Getenv(HelperVariable); name == "oracle" {
		runOracle()
		return
	} else if name != "" {
		helpers[name]()
		return
	}

	if err := ownFolder(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	http.DefaultTransport = Comparing(http.DefaultTransport)

	// With the race detector, a process waits a second before it exits, in case another thread has
	// something to report. 20 ms are enough here.
	_ = os.Setenv("GORACE", "atexit_sleep_ms=20")

	code := run()
	for _, stop := range atEnd.calls {
		stop()
	}
	_ = os.RemoveAll(Folder)
	os.Exit(differences.report(code))
}
