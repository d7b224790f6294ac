//go:build linux

package install

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

// A server must not take the control socket of a sidecar that runs on the same folder.
func TestAServerIsRefusedOnTheFolderOfARunningSidecar(t *testing.T) {
	t.Parallel()
	sidecar := harness.StartSidecar(t, t.TempDir(), harness.FreePort(t))
	const inUse = "it is the data folder of a sidecar; give this server another one"
	server := harness.Begin(t, harness.Program(t), nil, sidecar.Data, "127.0.0.1:0", "server")
	if server.Takes() {
		t.Error("the server starts")
		server.Stop()
	} else if !strings.Contains(harness.LastLine(server.Logged()), inUse) {
		t.Errorf("the server ends with %q, want %q", harness.LastLine(server.Logged()), inUse)
	}

	if _, errs, code := harness.RunWith(t, nil, "spool", "status", "--data", sidecar.Data); code != 0 {
		t.Errorf("spool status of the sidecar: exit %d, %s", code, errs)
	}
	if _, err := os.Stat(filepath.Join(sidecar.Data, "archive")); !errors.Is(err, os.ErrNotExist) {
		t.Error("the server left a database in the sidecar's folder")
	}
	sidecar.Stop()
}
