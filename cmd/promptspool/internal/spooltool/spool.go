// Package spooltool has the commands `promptspool spool ...` and `promptspool dead ...`.
//
// They work on a sidecar's spool: through the control socket of a running sidecar, or in the folder of a stopped one.
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

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/api/ops"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/datafolder"
	"promptspool/cmd/promptspool/internal/print"
	"promptspool/proxy"
	"promptspool/spool/queue"
)

// SpoolCommand is `promptspool spool`.
func SpoolCommand() *cli.Command {
	return config.Commands("spool", "inspect, verify, repair and drain a sidecar's spool",
		config.Command("status",
			"show the events queued for the server; for a stopped sidecar, every event is read",
			spoolStatus, config.ShowingFlags(), []cli.Flag{sidecarDataFlag()}),

		config.Command("check",
			"read and verify every event, and prove that none is missing; changes nothing",
			checkSpool, []cli.Flag{sidecarDataFlag()}, config.OutputFlags()),

		config.Command("export [FILE]",
			"write events as newline-delimited JSON, which `requests import` takes",
			exportSpool, []cli.Flag{sidecarDataFlag()}),

		config.Command("repair", "show what would mend a stopped sidecar's spool, and do it with --apply",
			repairSpool, []cli.Flag{
				config.SwitchFlag("apply", "do it; what is damaged is kept in the folder quarantine"),
				sidecarDataFlag(),
			}, config.OutputFlags()),

		config.Command("drain",
			"deliver what a stopped sidecar's spool holds, until it is empty; "+
				"held events too, if the server takes their key",
			drainStopped, []cli.Flag{
				config.TextFlag("timeout", "10m", "after which `time` to give up; what is left stays"),
				sidecarDataFlag(),
				config.TextFlag("upstream", "", "the server's `URL`, such as http://127.0.0.1:8788"),
			}, config.OutputFlags(), config.TrustFlags("upstream")))
}

func spoolStatus(c *cli.Context) error {
	data, running, status, err := spoolTarget(c)
	if err != nil {
		return err
	}
	if !running {
		// A stopped sidecar's folder does not say where it forwarded to.
		status.Upstream = "- (no sidecar runs here)"
		status.Spool, err = folderStatus(c, data)
		if err != nil {
			return err
		}
	}

	s := status.Spool
	return print.Output(c, s, func(t *print.Table) {
		t.Row("queued", print.Quantity(s.Events, "event"))
		t.Row("payload", humanize.IBytes(uint64(s.Bytes)))
		t.Row("on disk", humanize.IBytes(uint64(s.DiskBytes)))
		oldest := "-"
		if !s.Oldest.IsZero() {
			oldest = t.Moment(s.Oldest)
		}
		t.Row("oldest", oldest)

		t.Row("held", print.Explained(s.Held, "event", "because the server rejects the key"))
		t.Row("dead letters", print.DeadLetters(int64(s.Dead), int64(s.Dropped)))
		t.Row("lost", print.Explained(s.Gaps, "event", "by damage to the disk"))
		if s.Uncertain > 0 {
			t.Row("not certain", print.Quantity(s.Uncertain, "event")+
				" of the newest commit missing after a crash, most likely never acknowledged")
		}
		t.Row("server", status.Upstream)
	})
}

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
