package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"promptspool/api"
	"promptspool/api/client"
	"promptspool/api/edge"
	"promptspool/api/ops"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/machine"
	"promptspool/metrics"
	"promptspool/registry"
	"promptspool/spool/disk"
)

// apiStopPatience is how long a stop takes requests, and waits for those that are being answered.
//
// With the drain it stays below the 25 s that a stop may take, and the 30 s after which Kubernetes kills.
const apiStopPatience = 10 * time.Second

// A stop takes requests until there were none for stopQuiet, at most for stopTaking: an app
// that is stopped together with its sidecar has something to log until its end.
const (
	stopQuiet  = 500 * time.Millisecond
	stopTaking = 7 * time.Second
)

// failedStopPatience is apiStopPatience after the disk failed. Callers that waited for it have been
// answered; what still hangs, hangs on the bad disk or is a connection without a request.
const failedStopPatience = 2 * time.Second

// process runs either role: its listeners, its background work, and its stop.
type process struct {
	role    roleConfig
	api     *api.Server
	tls     *config.LiveTLS   // of the API, and of OpenTelemetry
	ops     ops.Config        // isReady adds to Ready whether requests are taken
	control ops.ControlConfig // run adds what the process itself knows

	background []func(context.Context) error // each runs until its ctx ends
	failed     <-chan error                  // ends the process immediately; may be nil
	drain      func(context.Context)         // after the API has ended, before the background does; may be nil
	lingers    bool                          // a stop takes requests for a while
	started    func()                        // called when requests are taken: the start needs no more time
	ready      func(addresses)               // called after started; may be nil

	taking  atomic.Bool           // requests are taken
	failure atomic.Pointer[error] // why the process ends; nil while it runs, or if it was told to end
}

// addresses are where a running process listens. Their ports are the real ones, also where the flags ask for port 0.
type addresses struct{ api, ops, otlp string } // otlp is "" if there is none

// run serves until ctx ends or a part fails.
//
// Then it stops in order: it is not ready, takes no new requests, drains, and ends the
// background and the operations.
func (p *process) run(ctx context.Context) error {
	machine.UseProcessors()
	listeners, err := p.listen()
	if err != nil {
		return err
	}
	measured := p.ops
	measured.Ready = p.isReady
	operations, control := ops.New(measured), p.newControl(listeners.api.Addr())

	// Parts that run after the API outlive ctx: they end after the API.
	running, cancel := context.WithCancel(context.Background())
	defer cancel()
	group, running := errgroup.WithContext(running)
	group.Go(func() error { return p.api.Serve(p.tls.Serve(listeners.api)) })
	if listeners.otlp != nil {
		group.Go(func() error { return p.api.ServeOTLP(p.tls.Serve(listeners.otlp)) })
	}
	group.Go(func() error { return operations.Serve(listeners.ops) })
	group.Go(func() error { return control.Serve(listeners.control) })
	for _, work := range p.background {
		group.Go(func() error { return work(running) })
	}

	p.taking.Store(true)
	at := addresses{api: listeners.api.Addr().String(), ops: listeners.ops.Addr().String()}
	if listeners.otlp != nil {
		at.otlp = listeners.otlp.Addr().String()
		p.role.logger.Info("taking OpenTelemetry on a separate listener", "otlp_listen", at.otlp)
	}
	p.role.logger.Info("taking requests",
		"listen", at.api, "ops_listen", at.ops, "data", p.role.data, "version", version)
	p.started()
	machine.NotifyReady()
	if p.ready != nil {
		p.ready(at)
	}

	failure := p.serve(ctx, running)
	machine.NotifyStopping()
	patience := apiStopPatience
	p.taking.Store(false)
	if p.lingers && failure == nil && running.Err() == nil {
		begun := time.Now()
		failure = p.linger(running, p.api.Quiet)
		patience -= time.Since(begun)
	}
	if failure != nil {
		p.failure.Store(&failure)
		patience = failedStopPatience
	}

	stopping, stopped := context.WithTimeout(context.Background(), patience)
	defer stopped()
	if err := p.api.Shutdown(stopping); err != nil {
		p.role.logger.Warn("requests were still being answered when the time for it was over", "error", err)
	}
	if p.drain != nil && failure == nil && running.Err() == nil {
		p.drain(context.Background())
	}
	cancel()
	_ = operations.Shutdown(stopping)
	_ = control.Shutdown(stopping)

	// Parts that ended because of the failure would only repeat it.
	if err := group.Wait(); failure == nil {
		return err
	}
	return failure
}

// listeners are those of one process.
type listeners struct {
	api, ops, control net.Listener
	otlp              net.Listener // nil for none
}

// listen opens all listeners, or none.
func (p *process) listen() (listeners, error) {
	// Before anything runs: a port that is in use ends the start.
	apiListener, err := listenAt(p.role.listen)
	if err != nil {
		return listeners{}, err
	}
	opsListener, err := listenAt(p.role.opsListen)
	if err != nil {
		return listeners{}, errors.Join(err, apiListener.Close())
	}
	control, err := ops.ListenControl(p.role.data)
	if err != nil {
		return listeners{}, errors.Join(err, apiListener.Close(), opsListener.Close())
	}

	all := listeners{
		api:     edge.Patient(apiListener, p.role.logger),
		ops:     edge.Patient(opsListener, p.role.logger),
		control: edge.Patient(control, p.role.logger),
	}
	if p.role.otlpListen.At != "" {
		otlpListener, err := listenAt(p.role.otlpListen)
		if err != nil {
			return listeners{}, errors.Join(err, apiListener.Close(), opsListener.Close(), control.Close())
		}
		all.otlp = edge.Patient(otlpListener, p.role.logger)
	}

	return all, nil
}

// listenAt opens a listener. An error names its flag.
func listenAt(a config.Address) (net.Listener, error) {
	listener, err := machine.Listen(a.At)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.Flag, err)
	}
	return listener, nil
}

// isReady returns why the process is not ready, or nil. It is ready only while requests are taken.
func (p *process) isReady() error {
	switch failure := p.failure.Load(); {
	case failure != nil:
		return *failure
	// A load balancer stops sending requests here before the listener closes.
	case !p.taking.Load():
		return errors.New("the process is starting or stopping")
	case p.ops.Ready != nil:
		return p.ops.Ready()
	}
	return nil
}

// newControl returns the server of the control socket.
func (p *process) newControl(apiAddr net.Addr) *edge.Server {
	config := p.control
	config.Server = cmp.Or(config.Server, p.tls.Url(apiAddr))
	config.Status, config.Ready, config.Logger = p.ops.Status, p.isReady, p.role.logger
	return ops.NewControl(config)
}

// serve waits until ctx ends or a part fails. It returns the failure, if it must end the process immediately.
func (p *process) serve(ctx, running context.Context) error {
	select {
	case <-ctx.Done():
		p.role.logger.Info("stopping")
		return nil
	case err := <-p.failed:
		return failedError(err)
	case <-running.Done():
		// A part ended with an error, which the group returns.
		return nil
	}
}

// linger takes requests until there were none for a while, as quiet has it, or the time for it
// is over. It returns the failure, if one must end the process immediately.
func (p *process) linger(running context.Context, quiet func() time.Duration) error {
	tick := time.NewTicker(stopQuiet / 10)
	defer tick.Stop()

	for begun := time.Now(); time.Since(begun) < stopTaking; {
		select {
		case <-tick.C:
		case err := <-p.failed:
			return failedError(err)
		case <-running.Done():
			return nil
		}

		if min(quiet(), time.Since(begun)) >= stopQuiet {
			return nil
		}
	}
	return nil
}

// failedError adds what happens next to the error of a failed spool or archive.
func failedError(err error) error {
	return fmt.Errorf("%w. The process ends, so that a new start can recover", err)
}

// watchEvery is how often metrics are set that nothing sets when it happens.
const watchEvery = 15 * time.Second

// every looks now, and then again and again after a time until ctx ends.
func every(between time.Duration, look func(context.Context)) func(context.Context) error {
	return func(ctx context.Context) error {
		tick := time.NewTicker(between)
		defer tick.Stop()
		for {
			look(ctx)
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
	}
}

// watchDisk keeps the metrics of what is free on the disk of the data folder, and of what must be, up to date. A nil
// freeMin stands for 0.
func watchDisk(data string, m *metrics.Metrics, freeMin func() int64) func(context.Context) error {
	return every(watchEvery, func(context.Context) {
		if freeMin != nil {
			m.DataFreeMin.Set(float64(freeMin()))
		}
		if space, err := disk.SpaceAt(data); err == nil {
			m.DataFree.Set(float64(space.Free))
		}
	})
}

// watchTemplates keeps the metric of how long the server has been silent about templates up to date.
func watchTemplates(cache *registry.Cache, m *metrics.Metrics) func(context.Context) error {
	return every(watchEvery, func(context.Context) { m.TemplateAgeSeconds.Set(cache.Age().Seconds()) })
}

const (
	skewMax   = 5 * time.Second // what the server allows before it orders writes by their arrival
	skewEvery = 5 * time.Second
)

// serverTime returns a clock that shows the server's time, or the sidecar's own as long as the server has told none.
func serverTime(clock *api.Clock, upstream *client.Client) func() time.Time {
	return func() time.Time {
		ahead, _, _ := upstream.Skew()
		return clock.Now().Add(-ahead)
	}
}

// watchSkew returns what keeps the metric of how far the sidecar's clock is from the server's up to date, and logs when
// the clocks disagree, until its ctx ends.
func watchSkew(upstream *client.Client, m *metrics.Metrics, logger *slog.Logger) func(context.Context) error {
	wrong := false
	return every(skewEvery, func(context.Context) {
		ahead, uncertain, known := upstream.Skew()
		if !known {
			return
		}
		m.ClockSkew.Set(ahead.Seconds())

		// Between the two bounds the last verdict stays.
		switch {
		case !wrong && ahead.Abs()-uncertain > skewMax:
			wrong = true
			logger.Warn("this machine's clock and the server's differ; set them right. "+
				"Until then the server orders what comes too early by its arrival",
				"ahead", ahead.Round(time.Millisecond).String())
		case wrong && ahead.Abs() < skewMax:
			wrong = false
			logger.Info("this machine's clock and the server's agree again")
		}
	})
}

// watchProjects keeps the names of projects in the metrics of usage up to date.
func watchProjects(db database, usage *metrics.Usage) func(context.Context) error {
	return every(watchEvery, func(ctx context.Context) {
		if usage == nil {
			return
		}
		// While the database is away, the names stay.
		if projects, err := db.Projects(ctx); err == nil {
			for _, p := range projects {
				usage.Name(p.ID, p.Name)
			}
		}
	})
}

// watchArchive keeps the metrics of the database up to date until ctx ends.
func watchArchive(at opened, m *metrics.Metrics) func(context.Context) error {
	db := at.db
	return every(watchEvery, func(ctx context.Context) {
		if at.damage != nil {
			damage := at.damage()
			m.ArchiveQuarantined.Set(float64(damage.Quarantined))
			m.ArchiveUnreadable.Set(float64(damage.UnreadableBytes))
		}

		if size, err := db.Size(ctx); err == nil {
			m.ArchiveRecords.Set(float64(size.Records))
			m.ArchiveDiskBytes.Set(float64(size.DiskBytes))
			m.OrphanRequests.Set(float64(size.Orphans.Requests))
			m.OrphanEvents.Set(float64(size.Orphans.Events))
		}

		if at.remote != nil {
			if away, err := at.remote.NodesAway(ctx); err == nil {
				m.ArchiveNodesAway.Set(float64(len(away)))
			}
		}

		// The next look tries again.
		_ = db.NotifyFleet(ctx)
		if known, alive, err := db.FleetOfAll(ctx); err == nil {
			m.FleetSidecars.WithLabelValues("alive").Set(float64(alive))
			m.FleetSidecars.WithLabelValues("silent").Set(float64(known - alive))
		}
	})
}
