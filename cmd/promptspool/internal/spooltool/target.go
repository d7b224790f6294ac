package spooltool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"promptspool/api/ops"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/datafolder"
	"promptspool/proxy"
	"promptspool/spool/queue"
)

func sidecarDataFlag() cli.Flag {
	return config.TextFlag("data", "", "the sidecar's data `folder`, or that of up"+config.UpDataHere)
}

// sidecarState is what these commands use of the status of a running sidecar.
type sidecarState struct {
	Role     string       `json:"role"`
	Upstream string       `json:"upstream"`
	Spool    queue.Status `json:"spool"`
}

// spoolTarget finds the spool of --data, and reports whether a sidecar runs on it.
//
// A running sidecar is asked through its control socket; otherwise its folder is read.
func spoolTarget(c *cli.Context) (data string, running bool, status sidecarState, err error) {
	data, err = config.RoleData(c, "sidecar")
	if err != nil {
		return data, false, status, err
	}

	err = ops.Control(c.Context, data, "GET", "/status", nil, &status)
	switch {
	// No socket, or one that a process left when it was killed.
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return data, false, status, nil
	case err == nil && status.Role != "sidecar":
		err = config.WrongValue(c, "data", data,
			"is the folder of a "+status.Role+", which has no spool; give a sidecar's")
	}
	return data, err == nil, status, err
}

// stoppedSpool is spoolTarget for a command that must not run beside a sidecar.
func stoppedSpool(c *cli.Context) (data string, err error) {
	data, running, _, err := spoolTarget(c)
	if err == nil && running {
		// Here the message can name the sidecar. The lock of the spool would refuse it, too.
		err = fmt.Errorf("a sidecar runs on %s, and this changes its files: stop it first", data)
	}
	return data, err
}

// inSpool opens the spool of a stopped sidecar for reading; it must exist.
func inSpool[T any](data string, read func(*queue.Folder) (T, error)) (result T, err error) {
	folder, err := queue.OpenFolder(datafolder.Spool(data))
	if err != nil {
		return result, err
	}
	result, err = read(folder)
	return result, errors.Join(err, folder.Close())
}

// stoppedSidecar is the spool and the keys of a stopped sidecar, open for changes.
type stoppedSidecar struct {
	spool *queue.Queue
	keys  *proxy.Keyring
}

func (s stoppedSidecar) close() error {
	s.keys.Close()
	return s.spool.Close()
}

// openStopped opens the spool and the keys of a stopped sidecar. The caller closes them.
func openStopped(data string, asker proxy.Asker, logger *slog.Logger) (stoppedSidecar, error) {
	// A folder without a spool is refused here: queue.Open would make one.
	if _, err := inSpool(data, func(*queue.Folder) (any, error) { return nil, nil }); err != nil {
		return stoppedSidecar{}, err
	}

	spool, err := queue.Open(stoppedConfig(data, logger))
	if err != nil {
		return stoppedSidecar{}, err
	}
	// After the spool, which knows the keys that its events need: all others are
	// forgotten.
	keys, err := proxy.OpenKeyring(proxy.KeyringConfig{
		Dir:           filepath.Join(data, "keys"),
		Asker:         asker,
		Spool:         spool,
		SpoolBytesMax: math.MaxInt64,
		Now:           time.Now,
		Logger:        logger,
	})
	if err != nil {
		return stoppedSidecar{}, errors.Join(err, spool.Close())
	}
	return stoppedSidecar{spool, keys}, nil
}

// stoppedConfig returns how a tool opens the spool of a stopped sidecar.
//
// A person decides here, so the sidecar's bounds do not apply.
func stoppedConfig(data string, logger *slog.Logger) queue.Config {
	return queue.Config{Dir: datafolder.Spool(data), BytesMax: 1 << 50, Logger: logger}
}

// noServer replaces the server in a tool that has none, and answers no question.
type noServer struct{}

func (noServer) Verdict(context.Context, wire.Secret) (wire.KeyVerdict, error) {
	return wire.KeyVerdict{}, wire.Unavailable(0, "There is no server to ask.")
}

func (noServer) Version(string, string, wire.Selector) (int, bool) { return 0, false }
