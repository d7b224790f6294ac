//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A server must not take the control socket of a sidecar that runs on the same folder.
func TestAServerIsRefusedOnTheFolderOfARunningSidecar(t *testing.T) {
	t.Parallel()
	sidecar := startSidecar(t, t.TempDir(), freePort(t))
	inUse := fmt.Sprintf("in use by another process (pid %d)", sidecar.cmd.Process.Pid)
	server := begin(t, program(t), nil, sidecar.data, "127.0.0.1:0", "server")
	if server.takes() {
		t.Error("the server starts")
		server.stop()
	} else if !strings.Contains(lastLine(server.logged()), inUse) {
		t.Errorf("the server ends with %q, want %q", lastLine(server.logged()), inUse)
	}

	if _, errs, code := runCommand(t, nil, "spool", "status", "--data", sidecar.data); code != 0 {
		t.Errorf("spool status of the sidecar: exit %d, %s", code, errs)
	}
	if _, err := os.Stat(filepath.Join(sidecar.data, "archive")); !errors.Is(err, os.ErrNotExist) {
		t.Error("the server left a database in the sidecar's folder")
	}
	sidecar.stop()
}
