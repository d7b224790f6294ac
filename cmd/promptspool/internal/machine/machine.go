// Package machine is a process's dealings with its system: memory, processors, open files, sockets, and systemd.
package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"promptspool/api/admission"
	"promptspool/api/edge"
	"promptspool/api/wire"
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

const (
	// sidecarMemory is the size from which a sidecar collects garbage eagerly, rather than when
	// its memory has doubled.
	sidecarMemory = 32 << 20

	// sidecarSlack is how much garbage there may be beside what is in use, when a large event
	// makes that more than usual.
	sidecarSlack = 16 << 20

	// OutsideHeap is the part of a cgroup's memory that the garbage collector does not see.
	// It holds code, and the pages of files that are written.
	OutsideHeap = 16 << 20

	// quietBytes is what an idle sidecar allocates at most between two samples. It is that much
	// when it counts the disk blocks of thousands of templates.
	quietBytes = 8 << 20
)

// TendMemory keeps a sidecar small until ctx ends.
//
// The collector's limit follows what is in use, once a second. A fixed limit would make it
// collect without end while a large event waits for the server, and one that doubles would
// double that. It never exceeds what the cgroup allows. When a load is over, its memory goes
// back to the system. GOMEMLIMIT overrides all this.
func TendMemory(ctx context.Context) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}

	most := max(OutsideHeap, CgroupMemory()-OutsideHeap)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()

	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	var allocated uint64
	busy := false
	for {
		metrics.Read(samples)
		used := int64(samples[0].Value.Uint64() + samples[2].Value.Uint64())
		for _, heap := range samples[3:] {
			// Stacks and the like remain.
			used -= int64(heap.Value.Uint64())
		}
		debug.SetMemoryLimit(min(max(sidecarMemory, used+sidecarSlack), most))

		// After a load, what it left goes back to the system in one go.
		now := samples[1].Value.Uint64()
		quiet := now-allocated < quietBytes
		if quiet && busy {
			debug.FreeOSMemory()
		}
		allocated, busy = now, !quiet

		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sidecarBufferBytes bounds the bodies that a sidecar holds: one of the largest size and many small ones.
const sidecarBufferBytes = wire.BodyBytesMax + 8<<20

// sidecarBufferMin has room for some bodies of the usual size, in a cgroup that is smaller than a sidecar needs.
const sidecarBufferMin = 8 << 20

// besideBodies is what a sidecar needs of its cgroup beside bodies: memory to spool, for smaller events
// on their way to the server, for connections, and what the garbage collector does not see.
const besideBodies = 24 << 20

// BodyBounds returns how many bytes of bodies a sidecar may hold together, and how large one may be.
//
// memory is what its cgroup has. Of what besideBodies leaves of it, five parts are for the bodies that are
// received, and four for an event on its way to the server, which was one of the largest size. One of that
// size always fits.
func BodyBounds(memory int64) (buffer, one int64) {
	buffer = min(sidecarBufferBytes, max(sidecarBufferMin, (memory-besideBodies)/9*5))

	// The budget leaves an eighth to small bodies, and a body takes a little more than its length.
	return buffer, min(wire.BodyBytesMax, buffer/5*4)
}

// RoomOf returns a sidecar's room for what it makes of large bodies, answers and templates.
//
// memory is what its cgroup has. Nothing is kept for the room: large bodies, a large event and a full room do
// not come together.
func RoomOf(memory int64) *admission.Room { return admission.NewRoom(min(24<<20, memory/4), memory/2) }

// noMemoryLimit is more than any machine has.
const noMemoryLimit = 1 << 50

// CgroupMemory returns how many bytes the process's cgroup, or one around it, may use.
func CgroupMemory() int64 {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return noMemoryLimit
	}

	least := int64(noMemoryLimit)
	for line := range bytes.Lines(text) {
		fields := strings.SplitN(strings.TrimSpace(string(line)), ":", 3)
		if len(fields) < 3 {
			continue
		}

		// The first version of cgroups has a tree for each controller.
		root, file := "/sys/fs/cgroup", "memory.max"
		switch fields[1] {
		case "":
		case "memory":
			root, file = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}

		for dir := fields[2]; ; dir = path.Dir(dir) {
			if bytes, err := readBytes(path.Join(root, dir, file)); err == nil {
				least = min(least, bytes)
			}
			if dir == "/" || dir == "." {
				break
			}
		}
	}
	return least
}

func readBytes(file string) (int64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	// "max" is an error, and no limit.
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

// socketMode is that of the file of a unix socket: our own user may call it, and the file's group.
const socketMode = 0o660

// Listen opens host:port, or a unix socket for unix:/path, which replaces a stale one.
func Listen(at string) (net.Listener, error) {
	path, isUnix := strings.CutPrefix(at, "unix:")
	if !isUnix {
		return net.Listen("tcp", at)
	}

	// A process that ended without closing its socket leaves the file.
	if conn, err := net.Dial("unix", path); err == nil {
		_ = conn.Close()
		return nil, fmt.Errorf("another process listens on %s", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}

	ln, err := edge.ListenUnix(path, socketMode)
	if err != nil {
		return nil, err
	}
	// The umask may have taken rights away.
	if err := os.Chmod(path, socketMode); err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return ln, nil
}
