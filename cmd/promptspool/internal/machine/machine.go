// Package machine is a process's dealings with its system: memory, processors, open files, sockets, and systemd.
package machine

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// UseProcessors lets twice as many threads run Go code as there are processors.
//
// Badger reads and writes files through mappings. A thread that the kernel makes wait for a page
// (10 ms and more when a new file is begun) holds what the runtime takes for a processor, and
// with it all goroutines that are queued there. GOMAXPROCS overrides it.
var UseProcessors = sync.OnceFunc(func() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(2 * runtime.GOMAXPROCS(0))
	}
})

// systemd gives up on a start after 90 s, unless it hears that the start takes longer.
const (
	startExtension = 30 * time.Second
	startTick      = 10 * time.Second
)

// ExtendStart asks systemd for more time, again and again, until ctx ends.
//
// Opening a large archive after a crash may take minutes. Where the process was not started by
// systemd, or by a unit without Type=notify, it does nothing.
func ExtendStart(ctx context.Context) {
	tick := time.NewTicker(startTick)
	defer tick.Stop()

	for {
		_, _ = daemon.SdNotify(false, fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", startExtension.Microseconds()))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// NotifyReady tells systemd that the process takes requests: units ordered after it may start.
func NotifyReady() { _, _ = daemon.SdNotify(false, daemon.SdNotifyReady) }

// NotifyStopping tells systemd that the process is stopping.
func NotifyStopping() { _, _ = daemon.SdNotify(false, daemon.SdNotifyStopping) }

// Files and connections take a descriptor each, and a process may have only so many. If
// connections took them all, the database could not open its next file.

// opsPart divides the free descriptors: the operations listener gets one part.
const opsPart = 16

// filesMax is how many descriptors are kept for files at most: a database of a terabyte needs them.
const filesMax = 4096

// connectionsMin is what each listener gets, however few descriptors there are.
const connectionsMin = 4

// ConnectionBounds returns how many connections the API and the operations listener may have.
//
// That is most and opsMost, or fewer if the limit of open files is low. Call it when the
// database is open: half of the descriptors that are left, or filesMax, stay for files and
// for calls to others.
func ConnectionBounds(most, opsMost int, logger *slog.Logger) (api, ops int) {
	limit, open, ok := descriptors()
	if !ok {
		return most, opsMost
	}
	left := limit - open

	// For a moment there are a quarter more than may be: those that are being cut.
	api = min(most, max(connectionsMin, (left-min(left/2, filesMax))*4/5))
	ops = min(opsMost, max(connectionsMin, left/opsPart))
	if api < most {
		logger.Info("the limit of open files (ulimit -n) bounds the connections",
			"open_files_max", limit, "connections_max", api)
	}

	return api, ops
}
