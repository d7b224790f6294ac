package machine

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"promptspool/metrics/partstest"
)

// onSocket serves 200 to these users on a unix socket.
func onSocket(t *testing.T, uids ...uint32) (path string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "socket") // short, for the address, and open to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}

	path = filepath.Join(dir, "s")
	ln, err := Listen("unix:"+path, uids)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("in"))
	}))

	s.Listener.Close()
	s.Listener = ln
	s.Start()
	t.Cleanup(s.Close)
	return path
}

// callSocket returns the response to our own user.
func callSocket(t *testing.T, path string) string {
	t.Helper()
	dial := func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", path) }
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
	res, err := c.Get("http://socket/")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestASocketIsForOurUserAndGroup(t *testing.T) {
	path := onSocket(t)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if answer := callSocket(t, path); info.Mode() != os.ModeSocket|0o660 || answer != "in" {
		t.Errorf("a socket of mode %v answers us %q", info.Mode(), answer)
	}
}

func TestASocketAsksTheKernelWhoCalls(t *testing.T) {
	path := onSocket(t, 65532)
	if answer := callSocket(t, path); answer != "in" {
		t.Errorf("our own user is answered %q", answer)
	}
	partstest.Need(t, "root", "curl")
	if os.Geteuid() != 0 {
		t.Fatal("this test becomes another user, which only root may: " +
			"run it as root (or leave it out with go test -skip Socket)")
	}
	for uid, want := range map[uint32]string{65532: "in", 65533: "Your user may not call this socket."} {
		cmd := exec.Command("curl", "-s", "--unix-socket", path, "http://socket/")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("user %d is answered %q, %v; want %q", uid, out, err, want)
		}
	}
}
