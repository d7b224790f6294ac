//go:build crashpoints

package crashpoint

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// crashAt and crashLeft are read once: PROMPTSPOOL_CRASH_AT=after-commit, or
// after-commit:3 for the third time that the point is reached.
var crashAt, crashLeft = func() (string, *atomic.Int64) {
	name, count, _ := strings.Cut(os.Getenv("PROMPTSPOOL_CRASH_AT"), ":")
	left := new(atomic.Int64)
	left.Store(1)
	if n, err := strconv.ParseInt(count, 10, 64); err == nil {
		left.Store(n)
	}

	return name, left
}()

// Reach kills the process with SIGKILL if PROMPTSPOOL_CRASH_AT names this point, as
// a power cut or the kernel would.
func Reach(name string) {
	if name != crashAt || crashLeft.Add(-1) != 0 {
		return
	}

	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	// The kernel needs a moment.
	select {}
}

// NoSync leaves out the sync of every commit, to prove that a test of power cuts
// would notice.
var NoSync = os.Getenv("PROMPTSPOOL_UNSAFE_NO_SYNC") != ""
