package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
)

// listenFlags are the two listeners of a role, and who may come to them.
func listenFlags(api, ops string) []cli.Flag {
	return append([]cli.Flag{
		stringFlag("listen", api, "the `address` of the API: host:port or unix:/path"),
		stringFlag("ops-listen", ops, "the `address` of metrics and probes: host:port"),
		switchFlag("listen-public", "let --listen and --ops-listen be reached from other machines, not by loopback only"),
		listFlag("allow-uid", "a `user`'s number that may call over a unix socket, besides our own; if absent, those whom the file's mode 0660 lets in; may be repeated"),
	}, tlsFlags()...)
}

// switchFlag is a flag that is given or not.
func switchFlag(name, usage string) cli.Flag {
	return &cli.BoolFlag{Name: name, Usage: usage, EnvVars: env(name)}
}

// address is where a listener listens, and whom it lets in.
type address struct {
	at   string   // host:port or unix:/path
	uids []uint32 // of a unix socket: who may call, besides our own user; none for all whom the file lets in
}

// address reads a listener's address. It must be of loopback, or a unix socket, unless --listen-public says otherwise: there is
// no password before the operations, and the API's keys would travel in clear.
func (v *values) address(name string) address {
	a := address{at: v.text(name)}
	for _, u := range texts(v.c, "allow-uid") {
		n, err := strconv.ParseUint(u, 10, 32)
		if err != nil {
			v.note(fmt.Errorf("%s: %q is not the number of a user, such as 65532", where(v.c, "allow-uid"), u))
		}
		a.uids = append(a.uids, uint32(n))
	}
	if path, isUnix := strings.CutPrefix(a.at, "unix:"); isUnix {
		if name == "ops-listen" || path == "" {
			v.wrong(name, "is not an address such as 127.0.0.1:8787")
		}
		return a
	}
	host, _, err := net.SplitHostPort(a.at)
	switch {
	case err != nil:
		v.wrong(name, "is not an address such as 127.0.0.1:8787")
	case !v.c.Bool("listen-public") && !isLoopback(host):
		v.wrong(name, "is reached from other machines; take 127.0.0.1, or allow it with --listen-public")
	}
	return a
}

// isLoopback says whether only this machine reaches a host.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// listen opens host:port, or a unix socket for unix:/path, which replaces a stale one.
func listen(a address) (net.Listener, error) {
	path, isUnix := strings.CutPrefix(a.at, "unix:")
	if !isUnix {
		return net.Listen("tcp", a.at)
	}
	if conn, err := net.Dial("unix", path); err == nil {
		_ = conn.Close()
		return nil, fmt.Errorf("another process listens on %s", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	mode := uint32(0o660)
	if len(a.uids) > 0 {
		mode = 0o666 // whoever comes is asked for the user's number
	}
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		// Linux takes the mode of the new file from the socket's own, less the umask.
		failed := c.Control(func(fd uintptr) { err = syscall.Fchmod(int(fd), mode) })
		return errors.Join(failed, err)
	}}
	ln, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, os.FileMode(mode)); err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	if len(a.uids) == 0 {
		return ln, nil
	}
	return peers{ln, append(a.uids, uint32(os.Getuid()))}, nil
}

// peers lets in only the users that it knows. The kernel says who a connection's other end is, and that cannot be forged: so pods
// that share a node's loopback can be told apart.
type peers struct {
	net.Listener
	uids []uint32
}

// notAllowed is the answer for all others.
const notAllowed = "HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 147\r\n\r\n" +
	`{"success":false,"error":"forbidden","message":"Your user may not call this socket. Name its number with --allow-uid at the sidecar.","fields":[]}` + "\n"

const turnAwayPatience = 200 * time.Millisecond

func (p peers) Accept() (net.Conn, error) {
	for {
		conn, err := p.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if uid, err := peerOf(conn); err == nil && slices.Contains(p.uids, uid) {
			return conn, nil
		}
		go turnAway(conn)
	}
}

// turnAway answers and hangs up, once the other end has read the answer or had the time for it: to close a socket with
// something unread in it throws the answer away.
func turnAway(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(turnAwayPatience))
	_, _ = io.WriteString(conn, notAllowed)
	_ = conn.(*net.UnixConn).CloseWrite()
	_, _ = io.Copy(io.Discard, conn)
}

// peerOf is the user at the other end of a unix socket.
func peerOf(conn net.Conn) (uint32, error) {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	failed := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(failed, err); err != nil {
		return 0, err
	}
	return cred.Uid, nil
}
