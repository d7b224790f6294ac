package spooltool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"syscall"

	"github.com/urfave/cli/v2"

	"promptspool/api/ops"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/datafolder"
	"promptspool/proxy"
	"promptspool/spool"
)

func sidecarDataFlag() cli.Flag {
	return config.TextFlag("data", "", "the sidecar's data `folder`, or that of up")
}

// sidecarState is what these commands use of the status of a running sidecar.
type sidecarState struct {
	Role     string       `json:"role"`
	Upstream string       `json:"upstream"`
	Spool    spool.Status `json:"spool"`
}

// spoolTarget finds the spool of --data, and reports whether a sidecar runs on it.
//
// A running sidecar is asked through its control socket; otherwise its folder is read.
func spoolTarget(c *cli.Context) (data string, running bool, status sidecarState, err error) {
	if data, err = config.RoleData(c, "sidecar"); err != nil {
		return data, false, status, err
	}

	err = ops.Control(c.Context, data, "GET", "/status", nil, &status)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return data, false, status, nil
	case err == nil && status.Role != "sidecar":
		err = config.WrongValue(c, "data", data, "is the folder of a "+status.Role+", which has no spool; give a sidecar's")
	}
	return data, err == nil, status, err
}

// stoppedSpool is spoolTarget for what must not be done beside a sidecar.
func stoppedSpool(c *cli.Context) (data string, err error) {
	data, running, _, err := spoolTarget(c)
	if err == nil && running {
		err = fmt.Errorf("a sidecar runs on %s, and this changes its files: stop it first", data)
	}
	return data, err
}

// Live is the spool of this process, as the control socket shows it.
type Live struct {
	Queue *spool.Spool
	Proxy *proxy.Proxy
}

// Check verifies the spool.
func (l Live) Check(ctx context.Context) (any, error) { return l.Queue.Check(ctx) }

// Events are those that wait (lane "") or that a lane holds.
func (l Live) Events(ctx context.Context, lane string) iter.Seq2[ops.SpoolEvent, error] {
	if lane == "" {
		return waitingEvents(l.Queue.Waiting(ctx))
	}
	return laneEvents(lane, l.Queue.Lane)
}

// Replay puts events of the lanes back into the spool.
func (l Live) Replay(ctx context.Context, p ops.Pick) (int, error) {
	return eachLane(p, func(lane spool.Lane, pick func(uint64) bool) (int, error) {
		return l.Proxy.Replay(ctx, lane, pick, wire.Secret(p.Key))
	})
}

// Purge removes events of the lanes for good.
func (l Live) Purge(_ context.Context, p ops.Pick) (int, error) {
	return eachLane(p, l.Proxy.Purge)
}

// eachLane does something with what is picked in each lane that is meant.
func eachLane(p ops.Pick, do func(spool.Lane, func(uint64) bool) (int, error)) (total int, err error) {
	lanes := []spool.Lane{spool.LaneHeld, spool.LaneDead}
	if p.Lane != "" {
		lane, err := spool.ParseLane(p.Lane)
		if err != nil {
			return 0, wire.Invalid(wire.FieldError{Field: "lane", Reason: err.Error()})
		}
		lanes = []spool.Lane{lane}
	}

	wanted := map[uint64]bool{}
	for _, seq := range p.Sequences {
		wanted[seq] = true
	}

	for _, lane := range lanes {
		n, err := do(lane, func(seq uint64) bool { return p.All || wanted[seq] })
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

func waitingEvents(events iter.Seq2[spool.Entry, error]) iter.Seq2[ops.SpoolEvent, error] {
	return func(yield func(ops.SpoolEvent, error) bool) {
		for e, err := range events {
			if !yield(ops.SpoolEvent{Seq: e.Seq, Key: e.Key, At: e.At, Data: e.Data}, err) {
				return
			}
		}
	}
}

func laneEvents(name string, read func(spool.Lane) iter.Seq2[spool.LaneEntry, error]) iter.Seq2[ops.SpoolEvent, error] {
	return func(yield func(ops.SpoolEvent, error) bool) {
		lane, err := spool.ParseLane(name)
		if err != nil {
			yield(ops.SpoolEvent{}, err)
			return
		}
		for e, err := range read(lane) {
			s := ops.SpoolEvent{Seq: e.Seq, Key: e.Key, At: e.At, Lane: name, Reason: e.Reason, MovedAt: e.MovedAt, Data: e.Data}
			if !yield(s, err) {
				return
			}
		}
	}
}

// eventsOf calls do for each event that waits (lane "") or lies in a lane, of a running sidecar or of a folder. An event that
// cannot be read comes with its Error.
func eventsOf(c *cli.Context, lane string, do func(ops.SpoolEvent) error) error {
	data, running, _, err := spoolTarget(c)
	if err != nil {
		return err
	}
	if running {
		path := "/spool/events?lane=" + url.QueryEscape(lane)
		return ops.ControlLong(c.Context, data, "GET", path, nil, func(r io.Reader) error {
			for d := json.NewDecoder(r); ; {
				var e ops.SpoolEvent
				if err := d.Decode(&e); err != nil {
					if errors.Is(err, io.EOF) {
						return nil
					}
					return err
				}
				if err := do(e); err != nil {
					return err
				}
			}
		})
	}

	return inSpool(data, func(folder *spool.Folder) error {
		events := waitingEvents(folder.Waiting())
		if lane != "" {
			events = laneEvents(lane, folder.Lane)
		}
		return doEach(c.Context, events, do)
	})
}

// inSpool opens the spool of a stopped sidecar, which must exist, to read it.
func inSpool(data string, do func(*spool.Folder) error) error {
	folder, err := spool.OpenFolder(datafolder.Spool(data))
	if err != nil {
		return err
	}

	return errors.Join(do(folder), folder.Close())
}

func doEach(ctx context.Context, events iter.Seq2[ops.SpoolEvent, error], do func(ops.SpoolEvent) error) error {
	for e, err := range events {
		if err != nil {
			e.Data, e.Error = nil, err.Error()
		}
		if err := errors.Join(ctx.Err(), do(e)); err != nil {
			return err
		}
	}
	return nil
}

// openStopped opens the spool and the keys of a stopped sidecar, for what changes them. Call done afterwards.
func openStopped(data string, asker proxy.Asker, logger *slog.Logger) (queue *spool.Spool, keys *proxy.Keyring, done func() error, err error) {
	// A folder without a spool is refused here: spool.Open would make one.
	if err := inSpool(data, func(*spool.Folder) error { return nil }); err != nil {
		return nil, nil, nil, err
	}
	// A person decides here, so the sidecar's bounds do not hold.
	queue, err = spool.Open(spool.Config{Dir: datafolder.Spool(data), BytesMax: 1 << 50, GenerationBytes: 16 << 20, Logger: logger})
	if err != nil {
		return nil, nil, nil, err
	}
	keys, err = proxy.OpenKeyring(proxy.KeyringConfig{
		Dir: filepath.Join(data, "keys"), Asker: asker, Spool: queue, SpoolBytesMax: math.MaxInt64, Logger: logger,
	})
	if err != nil {
		return nil, nil, nil, errors.Join(err, queue.Close())
	}
	return queue, keys, func() error { keys.Close(); return queue.Close() }, nil
}

// nobody is the server of a tool that has none: it cannot be asked.
type nobody struct{}

func (nobody) Verdict(context.Context, wire.Secret) (wire.KeyVerdict, error) {
	return wire.KeyVerdict{}, wire.Unavailable(0, "There is no server to ask.")
}
func (nobody) Version(string, string, wire.Selector) (int, bool) { return 0, false }
