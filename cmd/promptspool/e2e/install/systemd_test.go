//go:build linux

package install

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"promptspool/cmd/promptspool/e2e/harness"
)

// The example of the page runs as both services, its files beside it: only the ports and
// the folders are others. systemd is told that a start takes longer, and then that it is
// over. What the units say of restarts is checked in deploy.
func TestTheExampleConfigurationRunsAsBothServices(t *testing.T) {
	t.Parallel()
	settings := ""
	for _, e := range harness.ExamplesOf("configuration") {
		if e.Language == "yaml" {
			settings = e.Code
		}
	}
	dir := t.TempDir()
	key := strings.Repeat("k", 40)
	for name, content := range map[string]string{"c.yaml": settings, "redact-secret": key, "bootstrap-key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	for _, role := range []string{"server", "sidecar"} {
		socket := filepath.Join(dir, role)
		notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		defer notify.Close()
		env := []string{"PROMPTSPOOL_BOOTSTRAP_KEY=", "NOTIFY_SOCKET=" + socket} // the key is in its file
		n := harness.Begin(t, harness.Program(t), env, t.TempDir(), "127.0.0.1:0",
			role, "--config", filepath.Join(dir, "c.yaml"))
		if !n.Takes() {
			t.Fatalf("the %s does not start:\n%s", role, n.Logged())
		}

		said, message := "", make([]byte, 256)
		_ = notify.SetReadDeadline(time.Now().Add(time.Minute))
		for !strings.Contains(said, "READY=1") {
			length, err := notify.Read(message)
			if err != nil {
				t.Fatalf("the %s tells systemd %q: %v", role, said, err)
			}
			said += string(message[:length]) + "\n"
		}
		if !strings.HasPrefix(said, "EXTEND_TIMEOUT_USEC=") {
			t.Errorf("the %s does not ask for more time while it starts: %q", role, said)
		}
	}
}
