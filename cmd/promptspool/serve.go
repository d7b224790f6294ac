package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"promptspool/api"
	"promptspool/api/auth"
	"promptspool/api/client"
	"promptspool/api/dashboard"
	"promptspool/api/ops"
	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/proxy"
	"promptspool/registry"
	"promptspool/registry/render"
	"promptspool/spool"
	"promptspool/spool/archive"
	"promptspool/spool/archive/calls"
)

// serverMemory is from where on the server collects garbage at once, rather than when its memory has doubled; GOMEMLIMIT overrides
// it. It is no bound: a call that needs more gets it.
const serverMemory = 192 << 20

// server keeps the records, the templates and the keys, until ctx ends. Everything it acknowledges is durable in its database.
func server(ctx context.Context, c serverConfig) error {
	folder, err := openData(c.data)
	if err != nil {
		return err
	}
	defer folder.Close()
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(serverMemory)
	}
	crash, err := openCrashFile(c.data, c.logger)
	if err != nil {
		return err
	}
	defer crash.Close()

	started := time.Now().UTC()
	m := metrics.New("server", version)
	at, err := openDatabase(ctx, c, crash.diskFailed())
	if err == nil {
		err = crash.clear()
	}
	if err != nil {
		crash.note(err)
		return err
	}
	db := at.db
	keys := auth.New(auth.Config{Store: db})
	templates := registry.New(registry.Config{Store: db, Logger: c.logger, ProviderBaseURLs: c.providerURLs})
	records := archive.New(archive.Config{Store: db, Versions: templates, Prices: c.prices, Metrics: m, Logger: c.logger, Audit: db})
	if c.bootstrapKey != "" {
		if _, err := keys.Bootstrap(ctx, c.bootstrapKey); err != nil {
			return errors.Join(err, db.Close())
		}
	}
	people := auth.NewPeople(auth.PeopleConfig{Store: db, SignUp: c.signUp})
	setup, err := people.Setup(ctx)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	live := newServerLive(c, keys, templates, m)
	pulse := &pulse{metrics: m, logger: c.logger}
	status := func() serverStatus { return statusOfServer(c.name, started, at, pulse) }
	writes := api.NewWriteQueue(records, m)
	counting := archive.NewCounting(records)
	connections, opsConnections := connectionBounds(serverConnectionsMax, ops.ConnectionsMax, c.logger)
	a := api.New(api.Config{
		Name: c.name, Version: version,
		Recorder: writes, Querier: records, Analyst: records, Keeper: records, Blueprint: calls.ReplyBlueprint,
		Templates: templates, Changes: templates, Fleet: db, Exporter: records,
		Authenticator: keys, Limiter: live.limiter,
		Pages: dashboard.New(dashboard.Config{
			People: people, Keys: keys, Records: counting, Recorder: writes, Templates: templates, Sidecars: db, Storage: db, Read: readCall,
			Providers: render.Providers(), Retention: dashboard.Retention(c.retention), Version: version, Logger: c.logger,
		}),
		ConnectionsMax: connections,
		Metrics:        m, Logger: c.logger,
	})
	p := process{
		data: c.data, logger: c.logger, ready: func(addr string) { c.ready(addr, setup) },
		api: a.NewServer(), apiListen: c.listen,
		ops: ops.Config{Metrics: m, Logger: c.logger, ConnectionsMax: opsConnections, Ready: pulse.err, Status: func() any { return status() },
			Describe: func(w io.Writer) { inWords(w, func(t *table) { describeServer(t, status()) }) }},
		opsListen:  c.opsListen,
		tls:        live.certs,
		reload:     c.reload,
		fixed:      c.settings,
		keys:       keys,
		people:     people.Operator(),
		archive:    at.tools,
		background: []func(context.Context) error{db.Run, keys.Run, templates.Watch, pulse.watch(at.remote), watchArchive(at, m), watchDisk(c.data, m)},
		failed:     at.failed,
	}
	err = p.run(ctx)
	crash.note(err)
	counting.Close() // it reads the database

	return errors.Join(err, db.Close())
}

// sidecarBufferBytes is for one body of the largest size and many small ones: a sidecar shall be small.
const sidecarBufferBytes = wire.BodyBytesMax + 16<<20

// sidecarBufferMin is for some bodies of the usual size, in a cgroup that is smaller than a sidecar needs.
const sidecarBufferMin = 8 << 20

// sidecarConnectionsMax are 25 MB if all of them stay in the midst of a call. An app that has more open and idle has the oldest closed.
const sidecarConnectionsMax = 1024

// serverConnectionsMax are 400 MB if all of them stay in the midst of a call.
const serverConnectionsMax = 16 << 10

// sidecar takes writes into its spool and forwards them, and serves templates from its cache, until ctx ends. Everything it
// acknowledges is durable in the spool.
func sidecar(ctx context.Context, c sidecarConfig) error {
	m := metrics.New("sidecar", version)
	live := newSidecarLive(c, m)
	clock := api.NewClock(c.now)
	upstream, err := client.New(client.Config{URL: c.upstream, Version: version, TLS: live.upstreamCerts.client(), Now: clock.Now})
	if err != nil {
		return fmt.Errorf("--upstream: %w", err)
	}
	defer upstream.Close()
	folder, err := openData(c.data)
	if err != nil {
		return err
	}
	defer folder.Close()
	crash, err := openCrashFile(c.data, c.logger)
	if err != nil {
		return err
	}
	defer crash.Close()
	queue, err := spool.Open(spool.Config{
		Dir: filepath.Join(c.data, "spool"), BytesMax: c.spoolBytesMax, FreeMin: c.spoolFreeMin,
		DataDir: c.data, DiskMax: c.diskMax, Logger: c.logger, Metrics: m, Now: clock.Now,
	})
	if err == nil {
		err = crash.clear() // the spool reads what it opens before in any case
	}
	if err != nil {
		return err
	}
	defer queue.Close() // a second time is harmless
	_, newest := queue.Newest()
	clock.StartAfter(newest)
	keys, err := proxy.OpenKeyring(proxy.KeyringConfig{
		Dir: filepath.Join(c.data, "keys"), Asker: upstream, Spool: queue, SpoolBytesMax: c.spoolBytesMax, Logger: c.logger,
	})
	if err != nil {
		return err
	}
	defer keys.Close()
	work := roomOf(cgroupMemory())
	templates, err := registry.NewCache(registry.CacheConfig{
		Dir: filepath.Join(c.data, "templates"), Upstream: upstream, Identities: keys.Identities, Metrics: m, Logger: c.logger,
		Room: work,
	})
	if err != nil {
		return err
	}
	first := &preload{what: c.preload, cache: templates, keys: keys, apiKey: c.apiKey, logger: c.logger, deadline: time.Now().Add(preloadMax)}
	sidecarID, err := idOf(c.data)
	if err != nil {
		return err
	}
	started, forwarder := time.Now().UTC(), proxy.NewForwarder(queue, keys, upstream, m, c.logger)
	status := func() sidecarStatus {
		return sidecarStatus{Role: "sidecar", ID: sidecarID, Version: version, Name: c.name, StartedAt: started, Upstream: c.upstream,
			Away: forwarder.Away(), ClockAhead: clockAhead(upstream), Spool: queue.Status()}
	}
	heart := proxy.Heart{Beater: upstream, Identities: keys.Identities, Away: forwarder.Away, Logger: c.logger,
		Status: func() wire.Heartbeat { return status().heartbeat() }}
	recorder := proxy.New(queue, keys, templates, c.logger)
	live.redactor.Next = recorder
	var authenticator api.Authenticator = keys
	if c.apiKey != "" {
		live.own = proxy.NewOwnKey(keys, c.apiKey, c.localKey)
		authenticator = live.own
	}
	connections, opsConnections := connectionBounds(sidecarConnectionsMax, ops.ConnectionsMax, c.logger)
	bufferBytes, bodyBytesMax := bodyBounds(cgroupMemory())
	if bodyBytesMax < wire.BodyBytesMax {
		c.logger.Warn("the memory limit bounds the bodies; 96 MiB are enough for those of every size",
			"body_bytes_max", bodyBytesMax)
	}
	a := api.New(api.Config{
		Name: c.name, Version: version,
		Recorder:      live.redactor,
		Blueprint:     calls.ReplyBlueprint,
		Querier:       upstream,
		Analyst:       upstream,
		Keeper:        upstream,
		ExportRelay:   upstream,
		Templates:     templates,
		Fleet:         upstream,
		Pages:         dashboard.NewDocs(version, c.logger),
		Authenticator: authenticator,
		OwnKey:        c.apiKey != "", LocalKey: c.localKey != "",
		GuardBrowsers: true, MaskBatches: true, Hosts: c.allowHosts, Limiter: live.limiter,
		BufferBytes: bufferBytes, BodyBytesMax: bodyBytesMax, ConnectionsMax: connections, Room: work,
		Metrics: m, Logger: c.logger, Clock: clock, ClockID: sidecarID,
	})
	p := process{
		data: c.data, logger: c.logger, ready: c.ready,
		api: a.NewServer(), apiListen: c.listen,
		ops: ops.Config{Metrics: m, Logger: c.logger, ConnectionsMax: opsConnections, Started: first.started, Ready: queue.Ready, Status: func() any { return status() },
			Describe: func(w io.Writer) { inWords(w, func(t *table) { describeSidecar(t, status()) }) }},
		opsListen: c.opsListen,
		tls:       live.certs,
		reload:    c.reload,
		fixed:     c.settings,
		spool:     liveSpool{queue, recorder},
		background: []func(context.Context) error{
			queue.Run, templates.Run, keys.Run, recorder.Run, watchSkew(upstream, m, c.logger),
			watchDisk(c.data, m), watchTemplates(templates, m),
			forwarder.Run, heart.Run, first.run,
		},
		failed:  queue.Failed(),
		lingers: true,
		drain:   func(ctx context.Context) { drainSpool(ctx, queue, c) },
	}
	return errors.Join(p.run(ctx), queue.Close())
}
