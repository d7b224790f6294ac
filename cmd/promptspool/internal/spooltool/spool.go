// Package spooltool has the commands `promptspool spool ...` and `promptspool dead ...`.
//
// They work on a sidecar's spool: through the control socket of a running sidecar, or in the folder of a stopped one.
package spooltool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/api/client"
	"promptspool/api/ops"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/datafolder"
	"promptspool/cmd/promptspool/internal/print"
	"promptspool/metrics"
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

func checkSpool(c *cli.Context) error {
	data, running, _, err := spoolTarget(c)
	if err != nil {
		return err
	}

	progress := print.NewProgress(c, "Verifying", "", 0)
	var report queue.Report
	if running {
		err = ops.ControlLong(c.Context, data, "GET", "/spool/check", nil, func(r io.Reader) error {
			return json.NewDecoder(r).Decode(&report)
		})
	} else {
		report, err = checkFolder(c, data)
	}
	if progress.End(); err != nil {
		return err
	}

	if err := print.Output(c, report, func(t *print.Table) { reportTable(t, data, report) }); err != nil {
		return err
	}
	// After the report, whose details say what to repair; scripts see the exit code.
	if !report.Sound() {
		return fmt.Errorf("the disk lost %s that the app was told to be safe, or damaged a lane; "+
			"see `promptspool spool repair --data %s` and its quarantine",
			print.Quantity(report.LostEvents(), "event"), data)
	}
	return nil
}

func quarantineOf(data string) string { return filepath.Join(datafolder.Spool(data), "quarantine") }

func checkFolder(c *cli.Context, data string) (queue.Report, error) {
	return inSpool(data, func(f *queue.Folder) (queue.Report, error) { return f.Check(c.Context) })
}

func folderStatus(c *cli.Context, data string) (queue.Status, error) {
	return inSpool(data, func(f *queue.Folder) (queue.Status, error) { return f.Status(c.Context) })
}

// damageTable prints the losses and the damage in the report of a spool.
func damageTable(t *print.Table, data string, r queue.Report) {
	for _, l := range r.Lost {
		t.Row("Lost: " + lossText(t, queue.RecordedLoss{
			FoundAt: l.FoundAt,
			First:   l.First,
			Last:    l.Last,
			Events:  l.Last - l.First + 1,
			Reason:  l.Reason,
		}))
	}
	for _, l := range r.Lanes {
		for _, e := range l.Errors {
			t.Row("Damaged: " + e)
		}
	}
	for _, l := range r.Earlier {
		t.Row("Lost earlier: " + lossText(t, l))
	}

	quarantine := quarantineOf(data)
	for _, name := range r.Quarantine {
		t.Row("Set aside: " + filepath.Join(quarantine, name))
	}
	if len(r.Quarantine)+len(r.Earlier) > 0 {
		t.Row("Once you have dealt with it, remove the folder " + quarantine + "; it is reported until then.")
	}
}

// lossText says which events were lost, when that was found, and why.
func lossText(t *print.Table, l queue.RecordedLoss) string {
	text := print.Quantity(l.Events, "event")
	switch {
	case l.Lane != "":
		text += " of the " + l.Lane + " lane"
	case l.Events == 1:
		text += fmt.Sprintf(", number %d", l.First)
	default:
		text += fmt.Sprintf(", numbers %d to %d", l.First, l.Last)
	}

	// A sidecar that has not started since then has not found it.
	if !l.FoundAt.IsZero() {
		text += ", found " + t.Moment(l.FoundAt)
	}
	return text + ": " + l.Reason
}

// reportTable prints a report for people, its verdict last.
func reportTable(t *print.Table, data string, r queue.Report) {
	t.Head("GENERATION", "STATE", "FIRST", "LAST", "WAITING", "BYTES", "ACKED", "DAMAGED")
	for _, g := range r.Generations {
		t.Row(g.Name, g.State, g.First, g.Last, g.Events, humanize.IBytes(uint64(g.Bytes)), g.Acked, g.Damaged)
	}
	for _, l := range r.Lanes {
		t.Row("lane "+l.Lane, "", "", "", l.Events, humanize.IBytes(uint64(l.Bytes)), "", l.Damaged)
	}
	damageTable(t, data, r)

	// Apart from what is lost: the app may never have been told that these are safe.
	if r.Uncertain > 0 {
		t.Row("Not certain: " + print.Quantity(r.Uncertain, "event") + " of the newest commit missing; " +
			"the power most likely failed before the app was told that they are safe")
	}

	queued := print.Quantity(r.Events, "event")
	switch earlier := r.EarlierEvents(); {
	case !r.Sound():
		lost := print.Quantity(r.LostEvents(), "event")
		t.Row(fmt.Sprintf("Damaged: %s lost; %s queued and whole.", lost, queued))
	case earlier > 0:
		t.Row(fmt.Sprintf("Sound now: %s queued, each is whole. Lost earlier: %s.",
			queued, print.Quantity(earlier, "event")))
	default:
		t.Row(fmt.Sprintf("Sound: %s queued, each is whole, and none is missing.", queued))
	}
}

func repairSpool(c *cli.Context) error {
	data, err := stoppedSpool(c)
	if err != nil {
		return err
	}
	report, err := checkFolder(c, data)
	if err != nil {
		return err
	}

	if c.Bool("apply") {
		if _, err := queue.Repair(c.Context, stoppedConfig(data, config.ToolLogger(c))); err != nil {
			return err
		}
		// The report is then what the next start will find.
		report, err = checkFolder(c, data)
		if err != nil {
			return err
		}
	}

	return print.Output(c, report, func(t *print.Table) {
		t.Head("GENERATION", "STATE", "PLAN", "WHOLE", "LOST")
		for _, g := range report.Generations {
			t.Row(g.Name, g.State, g.Plan, g.Events, g.Damaged)
		}
		damageTable(t, data, report)

		switch {
		case c.Bool("apply"):
			t.Row("Done. The sidecar may be started.")
		case report.Work():
			t.Row("Nothing was changed. --apply does it; the damaged files are kept in the folder quarantine.")
		default:
			t.Row("There is nothing to repair.")
		}
	})
}

func drainStopped(c *cli.Context) error {
	v := config.Read(c)
	timeout, address := v.Duration("timeout"), v.Required("upstream")
	trust := v.Trust("upstream")
	if err := v.Err(); err != nil {
		return err
	}
	// Before the spool is opened, which changes its files: a wrong URL must change nothing.
	upstream, err := client.New(client.Config{URL: address, Version: c.App.Version, TLS: trust})
	if err != nil {
		return config.WrongValue(c, "upstream", address, err.Error())
	}
	defer upstream.Close()

	data, err := stoppedSpool(c)
	if err != nil {
		return err
	}
	logger := config.ToolLogger(c)
	stopped, err := openStopped(data, upstream, logger)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context, timeout)
	defer cancel()

	// Held events first: those whose key is accepted by now go out with the others.
	proxy.New(stopped.spool, stopped.keys, noServer{}, logger).RetryHeld(ctx)
	numbers := metrics.New("sidecar", c.App.Version)
	forwarder := proxy.NewForwarder(stopped.spool, stopped.keys, upstream, numbers, logger)
	// The same forwarder as in a sidecar: what is refused goes to the same lanes.
	progress := print.NewProgress(c, "Delivering", "events", int64(stopped.spool.Status().Events))
	err = forwardUntilEmpty(ctx, stopped.spool, forwarder, progress)
	progress.End()
	left := stopped.spool.Status()
	if err := errors.Join(err, stopped.close()); err != nil {
		return err
	}

	if err := print.Output(c, left, func(t *print.Table) {
		t.Head(">WAITING", ">HELD", ">DEAD LETTERS", ">LOST")
		t.Row(left.Events, left.Held, print.DeadLetters(int64(left.Dead), int64(left.Dropped)), left.Gaps)
	}); err != nil {
		return err
	}
	return undelivered(left, data)
}

// undelivered returns an error that says what became of the events that were not delivered; nil if all were.
func undelivered(left queue.Status, data string) error {
	switch {
	// The remedy comes first: a second try often delivers the rest.
	case left.Events > 0:
		return fmt.Errorf("%s left in the spool; run this again when the server answers",
			print.Quantity(left.Events, "event"))
	case left.Gaps > 0:
		return fmt.Errorf("everything that the disk could read was delivered, but it lost %s; damaged files are in %s",
			print.Quantity(left.Gaps, "event"), quarantineOf(data))
	case left.Held+left.Dead+left.Dropped > 0:
		return fmt.Errorf("the spool is empty, but the server refused %s by the key and %s by the content; "+
			"see `promptspool dead list --data %s`",
			print.Quantity(left.Held, "event"), print.Quantity(left.Dead+left.Dropped, "event"), data)
	}
	return nil
}

// forwardUntilEmpty runs the forwarder until no event waits or ctx ends.
//
// Only a fault of the spool is an error: what the server does not take stays queued.
func forwardUntilEmpty(
	ctx context.Context, spool *queue.Queue, forwarder *proxy.Forwarder, progress *print.Progress,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	ended := make(chan error, 1)
	go func() { ended <- forwarder.Run(ctx) }()
	waited := spool.Status().Events
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()

	for {
		left := spool.Status()
		progress.Set("", int64(waited)-int64(left.Events))
		if left.Events == 0 {
			cancel()
			return <-ended
		}

		select {
		case err := <-ended:
			return err
		case <-tick.C:
		}
	}
}
