//go:build linux

package durability

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"promptspool/cmd/promptspool/e2e/harness"
)

// unready waits until a process is not ready for a reason, or has ended with it.
func unready(n *harness.Node, reason string) {
	n.T.Helper()
	var last string
	n.Eventually(func() bool {
		if n.Ended() {
			last = harness.LastLine(n.Logged())
			return true
		}
		res, err := http.Get("http://" + n.Ops + "/readyz")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		last = string(body)
		return err == nil && res.StatusCode == http.StatusServiceUnavailable
	}, func() string { return "it stays ready: " + last })

	if !strings.Contains(last, reason) {
		n.T.Errorf("it does not say why it accepts no more: %s", last)
	}
}

// A data folder is moved away, or another disk is mounted over it, while its process
// runs. From then on no write is acknowledged, the process gives the reason, and it ends when
// it is stopped.
func TestNothingIsAckedInAFolderThatIsGone(t *testing.T) {
	t.Parallel()
	gone := map[string]func(t *testing.T, folder string){
		"moved away": func(t *testing.T, folder string) {
			if err := os.Rename(folder, folder+" elsewhere"); err != nil {
				t.Fatal(err)
			}
		},
		"mounted over": func(t *testing.T, folder string) { harness.MountTmpfs(t, folder) },
	}
	for _, role := range []string{"sidecar", "server"} {
		for how, take := range gone {
			t.Run(role+", "+how, func(t *testing.T) {
				t.Parallel()
				data := filepath.Join(t.TempDir(), "data")
				args := []string{role, "--name", "n"}
				if role == "sidecar" {
					args = append(args, "--upstream", "http://"+harness.FreePort(t), "--drain", "100ms")
				}
				n := harness.BeginPlain(t, data, "127.0.0.1:0", args...)
				if !n.Takes() {
					t.Fatal("it does not start")
				}
				n.Track("/rest/track-request", harness.AdminKey, harness.Chat())

				take(t, data)
				r, err := n.Try("POST", "/rest/track-request", harness.Chat(), "X-API-KEY", harness.AdminKey)
				if err == nil && r.Status != http.StatusServiceUnavailable {
					t.Errorf("a write is answered with %d %s", r.Status, r.Body)
				}
				// A process whose background met the folder first takes no more connections.
				if err != nil {
					n.Eventually(n.Ended, func() string { return "a write is not answered: " + err.Error() })
				}
				const reason = "is not there any more"
				unready(n, reason)
				if !strings.Contains(n.Logged(), reason) {
					t.Errorf("the log does not say why:\n%s", n.Logged())
				}

				_ = n.Cmd.Process.Signal(syscall.SIGTERM)
				select {
				case <-n.Exited:
				case <-time.After(25 * time.Second):
					t.Error("it does not end within 25 s of SIGTERM")
				}
				if signal := n.DiedOf(); signal > 0 {
					t.Errorf("it ends by signal %v", signal)
				}
			})
		}
	}
}
