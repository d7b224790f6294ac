//go:build linux

package durability

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

// The image of the disk is on a tmpfs that is smaller, and then full: what the kernel
// writes to it gets an I/O error, and so does every sync. Package queue has the same for
// a sidecar.
func TestASyncThatFailsEndsTheServerWithTheReason(t *testing.T) {
	t.Parallel()
	under := harness.MountTmpfs(t, t.TempDir())
	disk := harness.NewImage(t, harness.Ext4, under, 1024, false)
	server := harness.StartServer(t, filepath.Join(disk.Mount, "data"), "127.0.0.1:0")
	o := harness.StartOracle(t, harness.AdminKey)
	o.Load(server, 4, 2000, 0)
	server.Eventually(
		func() bool { return o.Count().Acked >= 20 },
		func() string { return "the load does not proceed" },
	)

	filler := filepath.Join(under, "filler")
	fill(t, filler)
	server.Eventually(server.Ended, func() string { return "the server goes on:\n" + server.Logged() })
	o.Halt()
	signal := server.DiedOf()
	saidWhy := strings.Contains(harness.LastLine(server.Logged()), "could not be made durable")
	if signal > 0 || server.Cmd.ProcessState.ExitCode() != 1 || !saidWhy {
		t.Errorf("the server ends with %v, and its last line is %s",
			server.Cmd.ProcessState, harness.LastLine(server.Logged()))
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
}
