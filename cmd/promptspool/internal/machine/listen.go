package machine

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"promptspool/api/edge"
)

// Listen opens host:port, or a unix socket for unix:/path, which replaces a stale one.
//
// uids are the users who may call a unix socket, besides our own; none for all whom the file lets in.
func Listen(at string, uids []uint32) (net.Listener, error) {
	path, isUnix := strings.CutPrefix(at, "unix:")
	if !isUnix {
		return net.Listen("tcp", at)
	}

	if len(uids) > 0 && !knowsPeers {
		return nil, errors.New("this system does not tell who connects to a unix socket: leave out --allow-uid, " +
			"and protect the socket's folder")
	}

	// A process that ended without closing its socket leaves the file.
	if conn, err := net.Dial("unix", path); err == nil {
		_ = conn.Close()
		return nil, fmt.Errorf("another process listens on %s", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}

	mode := os.FileMode(0o660)
	if len(uids) > 0 {
		// The kernel is asked which user connects.
		mode = 0o666
	}
	ln, err := edge.ListenUnix(path, mode)
	if err != nil {
		return nil, err
	}
	// The umask may have taken rights away.
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(err, ln.Close())
	}

	if len(uids) == 0 {
		return ln, nil
	}
	return peers{ln, append(slices.Clone(uids), uint32(os.Getuid()))}, nil
}

// peers accepts the connections of certain users only.
//
// The kernel reports who a connection's other end is, and that cannot be forged. So pods that share a
// node's loopback can be told apart.
type peers struct {
	net.Listener
	uids []uint32
}

// notAllowed is the answer for all others.
const notAllowed = "HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\n" +
	"Connection: close\r\nContent-Length: 147\r\n\r\n" +
	`{"success":false,"error":"forbidden","message":"Your user may not call this socket. ` +
	`Name its number with --allow-uid at the sidecar.","fields":[]}` + "\n"

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

// turnAway answers and hangs up, once the other end has read the answer or had the time for it.
//
// Closing a socket with something unread in it throws the answer away.
func turnAway(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(turnAwayPatience))
	_, _ = io.WriteString(conn, notAllowed)
	_ = conn.(*net.UnixConn).CloseWrite()
	_, _ = io.Copy(io.Discard, conn)
}
