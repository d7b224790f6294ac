package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"promptspool/api/wire"
)

// SocketName is the control socket's name in the data folder.
const SocketName = "control.sock"

const (
	controlPatience       = time.Minute // for an answer
	controlAnswerBytesMax = 64 << 20
)

// ListenControl makes the control socket in a data folder that this process alone has open; a socket left by a process
// that was killed is replaced. Its mode is 0600 from its first moment, whatever the folder's is. It stays in the folder
// when the listener closes; the next start replaces it.
func ListenControl(dataDir string) (net.Listener, error) {
	if err := os.Remove(filepath.Join(dataDir, SocketName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("the control socket of an earlier process cannot be replaced: %w", err)
	}
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		// Linux takes the mode of the new file from the socket's own.
		failed := c.Control(func(fd uintptr) { err = syscall.Fchmod(int(fd), 0o600) })
		return errors.Join(failed, err)
	}}
	var ln net.Listener
	err := atShortPath(dataDir, func(path string) (err error) {
		ln, err = config.Listen(context.Background(), "unix", path)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the control socket in %s: %w", dataDir, err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false) // a short path may mean another file by then
	return ln, nil
}

// atShortPath calls f with a path of the socket that fits the 107 bytes of a unix address, however deep the folder lies. The path
// holds until f returns.
func atShortPath(dataDir string, f func(path string) error) error {
	path := filepath.Join(dataDir, SocketName)
	if len(path) <= 100 {
		return f(path)
	}
	dir, err := os.Open(dataDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	return f("/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + "/" + SocketName)
}

// Control calls the control socket in a process's data folder: method and path, body (nil: none) and answer as JSON. An error
// that the process answered is a *wire.Error. The call ends with ctx, or after a minute.
func Control(ctx context.Context, dataDir, method, path string, body, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, controlPatience)
	defer cancel()
	return ControlLong(ctx, dataDir, method, path, body, func(r io.Reader) error {
		got, err := io.ReadAll(io.LimitReader(r, controlAnswerBytesMax))
		if err != nil {
			return err
		}
		return json.Unmarshal(got, answer)
	})
}

// ControlLong is Control for answers that take long or are long: read gets the body of a good one as it comes, and the call
// ends with ctx alone.
func ControlLong(ctx context.Context, dataDir, method, path string, body any, read func(io.Reader) error) error {
	var sent []byte
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://control"+path, bytes.NewReader(sent))
	if err != nil {
		return err
	}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (conn net.Conn, err error) {
		err = atShortPath(dataDir, func(path string) (err error) {
			conn, err = new(net.Dialer).DialContext(ctx, "unix", path)
			return err
		})
		return conn, err
	}}}
	res, err := c.Do(req)
	if err != nil {
		return notReached(dataDir, err)
	}
	defer res.Body.Close()
	if res.StatusCode == 200 {
		broken := &brokenReader{Reader: res.Body}
		if err := read(broken); err != nil {
			if broken.err != nil {
				err = notReached(dataDir, broken.err)
			}
			return err
		}
		return nil
	}
	got, err := io.ReadAll(io.LimitReader(res.Body, controlAnswerBytesMax))
	if err != nil {
		return notReached(dataDir, err)
	}
	var told wire.ErrorBody
	if err := json.Unmarshal(got, &told); err != nil {
		return fmt.Errorf("the process in %s answered with status %d and no reason", dataDir, res.StatusCode)
	}
	return &wire.Error{Code: told.Error, Message: told.Message, Fields: told.Fields}
}

// brokenReader remembers why an answer broke off.
type brokenReader struct {
	io.Reader
	err error
}

func (b *brokenReader) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}

// notReached tells why a process did not answer, and what to do about it.
func notReached(dataDir string, err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err // without "http://control", which is nowhere
	}
	switch {
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("the control socket in %s is another user's; run this as the user of the process: %w", dataDir, err)
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no process runs on the data folder %s: start it, or give its folder as --data (%w)", dataDir, err)
	}
	return fmt.Errorf("the process in %s did not answer: %w", dataDir, err)
}
