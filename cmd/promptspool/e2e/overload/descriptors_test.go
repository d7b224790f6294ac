//go:build linux

package overload

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"promptspool/cmd/promptspool/e2e/harness"
)

// fewFiles wraps a program so that it may have only a few files open.
func fewFiles(t *testing.T, program string, files int) string {
	t.Helper()
	script := filepath.Join(t.TempDir(), "few-files")
	text := fmt.Sprintf("#!/bin/sh\nulimit -n %d && exec %s \"$@\"\n", files, program)
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return script
}

// More connections than files may be open come to either role and say nothing. The role
// goes on, and others are answered.
func TestMoreConnectionsThanFilesEndNothing(t *testing.T) {
	t.Parallel()
	program := fewFiles(t, harness.Program(t), 64)
	addr := harness.FreePort(t)
	server := harness.Begin(t, program, nil, t.TempDir(), addr, "server", "--name", "central")
	if !server.Takes() {
		t.Fatal("the server does not start")
	}
	sidecar := harness.Begin(t, program, nil, t.TempDir(), "127.0.0.1:0",
		"sidecar", "--name", "pod-1", "--upstream", "http://"+addr)
	if !sidecar.Takes() {
		t.Fatal("the sidecar does not start")
	}

	for _, n := range []*harness.Node{server, sidecar} {
		for range 80 {
			begun(t, n.Addr, "")
			begun(t, n.Ops, "")
		}
	}

	var ids []string
	for range 5 {
		ids = append(ids, sidecar.Track("/rest/track-request", harness.AdminKey, harness.Chat()))
	}

	sidecar.Emptied()
	for _, id := range ids {
		server.Record(id, harness.Events(1))
	}

	for _, n := range []*harness.Node{sidecar, server} {
		n.Stop()
	}
}

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
