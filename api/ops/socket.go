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
	"syscall"
	"time"

	"promptspool/api/edge"
	"promptspool/api/wire"
)

// SocketName is the control socket's name in the data folder.
const SocketName = "control.sock"

const (
	controlTimeout        = time.Minute // for an answer
	controlAnswerBytesMax = 64 << 20
)

// ListenControl creates the control socket in a data folder that this process alone has
// open.
//
// The socket of a process that was killed is replaced. The mode is 0600 from the first
// moment, whatever the folder's is. The socket stays in the folder when the listener
// closes; the next start replaces it.
func ListenControl(dataDir string) (net.Listener, error) {
	if err := os.Remove(filepath.Join(dataDir, SocketName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("the control socket of an earlier process cannot be replaced: %w", err)
	}

	var ln net.Listener
	err := withShortPath(dataDir, func(path string) (err error) {
		ln, err = edge.ListenUnix(path, 0o600)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the control socket in %s: %w", dataDir, err)
	}

	// When the listener closes, a short path may mean another file.
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	return ln, nil
}

// socketPathMax fits into the 103 bytes of an address on macOS, with what edge.ListenUnix
// adds to it.
const socketPathMax = 80

// withShortPath calls f with a path of the socket that fits into an address, however long
// the folder's own path is. The path is valid until f returns.
func withShortPath(dataDir string, f func(path string) error) error {
	path := filepath.Join(dataDir, SocketName)
	if len(path) <= socketPathMax {
		return f(path)
	}

	short, done, err := edge.ShortPath(dataDir)
	if err != nil {
		return err
	}
	defer done()
	return f(filepath.Join(short, SocketName))
}

// Control calls the control socket in a process's data folder.
//
// The body, unless it is nil, and the answer are JSON. An error that the process answered
// is a *wire.Error. The request ends with ctx, or after a minute.
func Control(ctx context.Context, dataDir, method, path string, body, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()

	return ControlLong(ctx, dataDir, method, path, body, func(r io.Reader) error {
		text, err := io.ReadAll(io.LimitReader(r, controlAnswerBytesMax))
		if err != nil {
			return err
		}
		return json.Unmarshal(text, answer)
	})
}

// ControlLong is Control for answers that are long or take long. It calls read with the
// body of a successful answer as it arrives, and ends with ctx only.
func ControlLong(
	ctx context.Context, dataDir, method, path string, body any, read func(io.Reader) error,
) error {
	var sent []byte
	if body != nil {
		var err error
		sent, err = json.Marshal(body)
		if err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://control"+path, bytes.NewReader(sent))
	if err != nil {
		return err
	}

	res, err := socketClient(dataDir).Do(req)
	if err != nil {
		return unreachable(dataDir, err)
	}
	defer res.Body.Close()

	if res.StatusCode != 200 {
		return answeredError(dataDir, res)
	}

	err = read(res.Body)
	if errors.Is(err, io.ErrUnexpectedEOF) { // the answer broke off
		return unreachable(dataDir, err)
	}

	return err
}

// socketClient returns a client that connects to the control socket, whatever the URL's
// host.
func socketClient(dataDir string) *http.Client {
	dial := func(ctx context.Context, _, _ string) (conn net.Conn, err error) {
		err = withShortPath(dataDir, func(path string) (err error) {
			conn, err = new(net.Dialer).DialContext(ctx, "unix", path)
			return err
		})
		return conn, err
	}

	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
}

// answeredError returns the error that a process answered.
func answeredError(dataDir string, res *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(res.Body, controlAnswerBytesMax))
	if err != nil {
		return unreachable(dataDir, err)
	}

	var answer wire.ErrorBody
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("the process in %s answered with status %d and no reason", dataDir, res.StatusCode)
	}
	return &wire.Error{Code: answer.Error, Message: answer.Message, Fields: answer.Fields}
}

// unreachable returns why a process did not answer, and what to do about it.
func unreachable(dataDir string, err error) error {
	// Without the URL: "http://control" would only confuse.
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err
	}

	switch {
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("the control socket in %s is another user's; "+
			"run this as the user of the process: %w", dataDir, err)
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no process runs on the data folder %s: "+
			"start it, or give its folder as --data (%w)", dataDir, err)
	}

	return fmt.Errorf("the process in %s did not answer: %w", dataDir, err)
}
