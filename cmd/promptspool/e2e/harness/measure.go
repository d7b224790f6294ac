//go:build linux

package harness

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"promptspool/metrics/partstest"
)

// Holding is a process's share of the machine.
type Holding struct {
	Memory int64 // bytes of anonymous memory
	Files  int64 // open files
	Disk   int64 // bytes that its data folder occupies
}

// String is for the log of a test.
func (h Holding) String() string {
	return fmt.Sprintf("%.1f MiB anonymous, %d files, %.1f MiB on disk",
		float64(h.Memory)/(1<<20), h.Files, float64(h.Disk)/(1<<20))
}

// HeldBy measures a process.
func HeldBy(t testing.TB, n *Node) Holding {
	t.Helper()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", n.Cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	return Holding{MemoryOf(t, n, "RssAnon"), int64(len(files)), Occupied(t, n.Data)}
}

// MemoryOf returns a field of the process's status in bytes, such as RssAnon or VmHWM.
func MemoryOf(t testing.TB, n *Node, field string) int64 {
	t.Helper()
	return MemoryOfProcess(t, n.Cmd.Process.Pid, field)
}

// MemoryOfProcess is MemoryOf for any process.
func MemoryOfProcess(t testing.TB, pid int, field string) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), field+":")
	if after == "" {
		return 0 // it has just ended
	}
	kibibytes, err := strconv.ParseInt(strings.Fields(after)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kibibytes << 10
}

// Occupied returns how many bytes of the disk a folder's files take.
func Occupied(t testing.TB, dir string) (bytes int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil {
			return nil // it was removed meanwhile
		}
		if info, err := d.Info(); err == nil {
			bytes += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// WatchMemory watches a process's own memory, without the pages of the files that it
// maps. The function that it returns ends this and returns the peak.
func WatchMemory(t testing.TB, n *Node) (most func() int64) {
	stop, result := make(chan struct{}), make(chan int64, 1)
	go func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		peak := int64(0)
		for {
			peak = max(peak, MemoryOf(t, n, "RssAnon"))
			select {
			case <-stop:
				result <- peak
				return
			case <-tick.C:
			}
		}
	}()

	return func() int64 {
		close(stop)
		return <-result
	}
}

// Metrics returns what Prometheus would scrape.
func (n *Node) Metrics() string {
	n.T.Helper()
	res, err := http.Get("http://" + n.Ops + "/metrics")
	if err != nil {
		n.T.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		n.T.Fatal(err)
	}
	return string(body)
}

// Metric returns the sum of a metric's values.
func (n *Node) Metric(name string) (sum float64) {
	n.T.Helper()
	for line := range strings.Lines(n.Metrics()) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest == "" || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' ')+1:]), 64)
		if err != nil {
			n.T.Errorf("%s: %v", line, err)
		}
		sum += value
	}
	return sum
}

// CgroupBytes is the memory that a sidecar or a server needs at least.
const CgroupBytes = 96 << 20

// CgroupPrefix begins the name of a test's cgroup.
const CgroupPrefix = "promptspool-test-"

// LimitMemory returns a program that runs the given one in a memory cgroup of its own.
func LimitMemory(t *testing.T, program string, bytes int64) string {
	t.Helper()
	partstest.Need(t, "root")
	parent, file := "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
	if _, err := os.Stat(filepath.Join(parent, file)); err != nil {
		parent, file = "/sys/fs/cgroup", "memory.max"
		// If this fails, so does the next step.
		_ = os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+memory"), 0)
	}

	group, err := os.MkdirTemp(parent, CgroupPrefix)
	if err != nil {
		t.Fatalf("this test makes a memory cgroup, which only root may: "+
			"run it as root (or leave it out with go test -skip Cgroup): %v", err)
	}
	t.Cleanup(func() {
		if err := os.Remove(group); err != nil {
			t.Error(err)
		}
	})

	if err := os.WriteFile(filepath.Join(group, file), fmt.Append(nil, bytes), 0); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "limited")
	text := fmt.Sprintf("#!/bin/sh\necho $$ >%s/cgroup.procs && exec %s \"$@\"\n", group, program)
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return script
}
