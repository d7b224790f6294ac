package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"promptspool/api"
	"promptspool/api/edge"
	"promptspool/api/ops"
)

// apiStopPatience is how long a stop takes calls, and waits for those that are being answered. With the drain it stays below the 25 s
// that a stop may take, and the 30 s after which Kubernetes kills.
const apiStopPatience = 10 * time.Second

// A stop goes on taking calls until there were none for stopQuiet, at most for stopTaking: an app that is stopped together with its
// sidecar has something to log until its end.
const (
	stopQuiet  = 500 * time.Millisecond
	stopTaking = 7 * time.Second
)

// failedStopPatience is the same for a disk that failed: whoever waited for it has been told, and what still hangs, hangs on the bad
// disk or is a connection without a call.
const failedStopPatience = 2 * time.Second

// process is the running of either role: its listeners, its background work, and its stop.
type process struct {
	data      string
	logger    *slog.Logger
	api       *api.Server
	apiListen address
	tls       *liveTLS   // of the API's listener; may be nil
	ops       ops.Config // Ready may be nil; run adds to it whether calls are taken
	opsListen address
	keys      ops.Keys    // may be nil
	people    ops.People  // may be nil
	spool     ops.Spool   // may be nil
	archive   ops.Archive // may be nil

	background []func(context.Context) error // each runs until its ctx ends
	failed     <-chan error                  // ends the process at once; may be nil
	drain      func(context.Context)         // between the API's end and that of the background; may be nil
	lingers    bool                          // a stop goes on taking calls for a while
	reload     *reloader                     // may be nil
	fixed      fixedSettings                 // what is in force, without a reload; may be nil
	ready      func(addr string)
}

// run serves until ctx ends or something fails. Then it stops in order: not ready, no new calls, drain, background, operations.
func (p *process) run(ctx context.Context) error {
	useProcessors()
	var taking atomic.Bool
	var failed atomic.Pointer[error] // why it ends; nil while it does not, or because it was told to
	able := p.ops.Ready
	p.ops.Ready = func() error {
		switch {
		case failed.Load() != nil:
			return *failed.Load()
		case !taking.Load():
			return errors.New("the process is starting or stopping")
		case able != nil:
			return able()
		}
		return nil
	}
	apiLn, err := listen(p.apiListen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	opsLn, err := listen(p.opsListen)
	if err != nil {
		return errors.Join(fmt.Errorf("--ops-listen: %w", err), apiLn.Close())
	}
	controlLn, err := ops.ListenControl(p.data)
	if err != nil {
		return errors.Join(err, apiLn.Close(), opsLn.Close())
	}
	apiLn, opsLn, controlLn = edge.Patient(apiLn, p.logger), edge.Patient(opsLn, p.logger), edge.Patient(controlLn, p.logger)
	opsServer := ops.New(p.ops)
	control := ops.NewControl(ops.ControlConfig{
		Keys: p.keys, People: p.people, Server: p.tls.url(apiLn.Addr()),
		Spool: p.spool, Archive: p.archive, Status: p.ops.Status, Settings: p.settings(), Logger: p.logger,
	})

	running, cancel := context.WithCancel(context.Background()) // outlives ctx: what runs behind the API ends after it
	defer cancel()
	group, running := errgroup.WithContext(running)
	group.Go(func() error { return p.api.Serve(p.tls.serve(apiLn)) })
	group.Go(func() error { return opsServer.Serve(opsLn) })
	group.Go(func() error { return control.Serve(controlLn) })
	if p.reload != nil {
		p.background = append(p.background, p.reload.run)
	}
	for _, work := range p.background {
		group.Go(func() error { return work(running) })
	}
	taking.Store(true)
	p.logger.Info("taking calls", "listen", apiLn.Addr().String(), "ops_listen", opsLn.Addr().String(), "data", p.data, "version", version)
	if p.ready != nil {
		p.ready(apiLn.Addr().String())
	}

	var failure error
	select {
	case <-ctx.Done():
		p.logger.Info("stopping")
	case failure = <-p.failed:
		failure = failedError(failure)
	case <-running.Done(): // a part ended with an error, which Wait tells
	}
	taking.Store(false)
	patience := apiStopPatience
	if p.lingers && failure == nil && running.Err() == nil {
		begun := time.Now()
		failure = p.linger(running)
		patience -= time.Since(begun)
	}
	if failure != nil {
		failed.Store(&failure)
		patience = failedStopPatience
	}
	stopping, stopped := context.WithTimeout(context.Background(), patience)
	defer stopped()
	if err := p.api.Shutdown(stopping); err != nil {
		p.logger.Warn("calls were still being answered when the time for it was over", "error", err)
	}
	if p.drain != nil && failure == nil && running.Err() == nil {
		p.drain(context.Background())
	}
	cancel()
	_ = opsServer.Shutdown(stopping)
	_ = control.Shutdown(stopping)
	if err := group.Wait(); failure == nil {
		return err
	}
	return failure // what ended on account of it would only say so again
}

// failedError says what follows from a failed spool or archive, which says itself what it is.
func failedError(err error) error {
	return fmt.Errorf("%w. The process ends, so that a new start can recover", err)
}

// linger goes on taking calls until nobody calls, or the time for it is over. It returns why the process must end at once, if so.
func (p *process) linger(running context.Context) error {
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
		if min(p.api.Quiet(), time.Since(begun)) >= stopQuiet {
			return nil
		}
	}
	return nil
}

// settings are what the control socket shows of the configuration; nil when it is not known.
func (p *process) settings() ops.Settings {
	switch {
	case p.reload != nil:
		return p.reload
	case p.fixed != nil:
		return p.fixed
	}
	return nil
}
