//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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
	program := fewFiles(t, program(t), 64)
	addr := freePort(t)
	server := begin(t, program, nil, t.TempDir(), addr, "server", "--name", "central")
	if !server.takes() {
		t.Fatal("the server does not start")
	}
	sidecar := begin(t, program, nil, t.TempDir(), "127.0.0.1:0",
		"sidecar", "--name", "pod-1", "--upstream", "http://"+addr)
	if !sidecar.takes() {
		t.Fatal("the sidecar does not start")
	}

	for _, n := range []*node{server, sidecar} {
		for range 80 {
			begun(t, n.addr, "")
			begun(t, n.ops, "")
		}
	}

	var ids []string
	for range 5 {
		ids = append(ids, sidecar.track("/rest/track-request", adminKey, chat()))
	}

	sidecar.emptied()
	for _, id := range ids {
		server.record(id, events(1))
	}

	for _, n := range []*node{sidecar, server} {
		n.stop()
	}
}

// While no file can be opened, callers wait; then everything is answered: calls, probes,
// and the commands that go through the control socket.
func TestCallsWaitWhileTooManyFilesAreOpen(t *testing.T) {
	t.Parallel()
	server := startServer(t, t.TempDir(), freePort(t))
	fresh := &http.Client{Transport: comparing(&http.Transport{DisableKeepAlives: true}), Timeout: 20 * time.Second}
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
	pid := server.cmd.Process.Pid
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &before); err != nil {
		t.Fatal(err)
	}
	none := unix.Rlimit{Cur: 3, Max: before.Max}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &none, nil); err != nil {
		t.Fatal(err)
	}
	calls := []<-chan error{get("http://" + server.addr + "/nowhere"), get("http://" + server.ops + "/livez")}
	calls = append(calls, func() <-chan error {
		answered := make(chan error, 1)
		go func() {
			if _, errs, code := runCommand(t, nil, "keys", "list", "--data", server.data); code != 0 {
				answered <- fmt.Errorf("exit %d: %s", code, errs)
			}
			close(answered)
		}()
		return answered
	}())

	server.eventually(func() bool {
		return strings.Count(server.logged(), "Cannot accept a connection") >= 3 || server.ended()
	}, func() string { return "nothing was refused for want of files" })

	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &before, nil); err != nil {
		t.Fatal(err)
	}

	for i, answered := range calls {
		if err := <-answered; err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
	server.stop()
}
