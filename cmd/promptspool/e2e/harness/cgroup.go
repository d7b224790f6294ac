//go:build linux

package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"promptspool/metrics/partstest"
)

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
