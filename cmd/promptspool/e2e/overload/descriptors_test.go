//go:build linux

package overload

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"promptspool/cmd/promptspool/e2e/harness"
)

// While no file can be opened, callers wait; then everything is answered: calls, probes,
// and the commands that go through the control socket.
func TestCallsWaitWhileTooManyFilesAreOpen(t *testing.T) {
	t.Parallel()
	server := harness.StartServer(t, t.TempDir(), harness.FreePort(t))
	fresh := &http.Client{Transport: harness.Comparing(&http.Transport{DisableKeepAlives: true}),
		Timeout: 20 * time.Second}
	get := func(url string) <-chan error {
		answered := make(chan error, 1)
		go func() {
			res, err := fresh.Get(url)
			if err == nil {
				res.Body.Close()
			}
			answered <- err
		}()
		return answered
	}

	var before unix.Rlimit
	pid := server.Cmd.Process.Pid
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &before); err != nil {
		t.Fatal(err)
	}
	none := unix.Rlimit{Cur: 3, Max: before.Max}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &none, nil); err != nil {
		t.Fatal(err)
	}
	calls := []<-chan error{get("http://" + server.Addr + "/nowhere"), get("http://" + server.Ops + "/livez")}
	calls = append(calls, func() <-chan error {
		answered := make(chan error, 1)
		go func() {
			if _, errs, code := harness.RunWith(t, nil, "keys", "list", "--data", server.Data); code != 0 {
				answered <- fmt.Errorf("exit %d: %s", code, errs)
			}
			close(answered)
		}()
		return answered
	}())

	server.Eventually(func() bool {
		return strings.Count(server.Logged(), "Cannot accept a connection") >= 3 || server.Ended()
	}, func() string { return "nothing was refused for want of files" })

	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &before, nil); err != nil {
		t.Fatal(err)
	}

	for i, answered := range calls {
		if err := <-answered; err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
	server.Stop()
}
