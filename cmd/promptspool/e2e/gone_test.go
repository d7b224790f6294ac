//go:build linux

package e2e

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// unready waits until a process is not ready for a reason, or has ended with it.
func (n *node) unready(reason string) {
	n.t.Helper()
	var last string
	n.eventually(func() bool {
		if n.ended() {
			last = lastLine(n.logged())
			return true
		}
		res, err := http.Get("http://" + n.ops + "/readyz")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		last = string(body)
		return err == nil && res.StatusCode == http.StatusServiceUnavailable
	}, func() string { return "it stays ready: " + last })

	if !strings.Contains(last, reason) {
		n.t.Errorf("it does not say why it accepts no more: %s", last)
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
		"mounted over": func(t *testing.T, folder string) { mountTmpfs(t, folder) },
	}
	for _, role := range []string{"sidecar", "server"} {
		for how, take := range gone {
			t.Run(role+", "+how, func(t *testing.T) {
				t.Parallel()
				data := filepath.Join(t.TempDir(), "data")
				args := []string{role, "--name", "n"}
				if role == "sidecar" {
					args = append(args, "--upstream", "http://"+freePort(t), "--drain", "100ms")
				}
				n := beginPlain(t, data, "127.0.0.1:0", args...)
				if !n.takes() {
					t.Fatal("it does not start")
				}
				n.track("/rest/track-request", adminKey, chat())

				take(t, data)
				r, err := n.try("POST", "/rest/track-request", chat(), "X-API-KEY", adminKey)
				if err == nil && r.Status != http.StatusServiceUnavailable {
					t.Errorf("a write is answered with %d %s", r.Status, r.Body)
				}
				// A process whose background met the folder first takes no more connections.
				if err != nil {
					n.eventually(n.ended, func() string { return "a write is not answered: " + err.Error() })
				}
				const reason = "is not there any more"
				n.unready(reason)
				if !strings.Contains(n.logged(), reason) {
					t.Errorf("the log does not say why:\n%s", n.logged())
				}

				_ = n.cmd.Process.Signal(syscall.SIGTERM)
				select {
				case <-n.eof:
				case <-time.After(25 * time.Second):
					t.Error("it does not end within 25 s of SIGTERM")
				}
				if signal := n.diedOf(); signal > 0 {
					t.Errorf("it ends by signal %v", signal)
				}
			})
		}
	}
}
