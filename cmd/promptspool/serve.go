package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/urfave/cli/v2"

	"promptspool/api"
	"promptspool/api/auth"
	"promptspool/api/client"
	"promptspool/api/dashboard"
	"promptspool/api/ops"
	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/proxy"
	"promptspool/proxy/redact"
	"promptspool/registry"
	"promptspool/registry/prices"
	"promptspool/registry/render"
	"promptspool/spool"
	"promptspool/spool/archive"
	"promptspool/spool/archive/badgerdb"
)

// serverConfig is what a server is started with.
type serverConfig struct {
	data              string
	listen, opsListen address
	tls               *tlsState // of the API's listener; nil for none
	name              string
	bootstrapKey      wire.Secret // "" for none
	prices            *prices.Table
	providerURLs      map[string]string // by provider
	retention         badgerdb.Retention
	signUp            wire.SignUp
	limits            api.Limits
	logger            *slog.Logger
	level             *slog.LevelVar // of logger; nil when there is no reload
	reload            *reloader      // nil for none
	// ready is called once, when calls are taken, with the code with which the first person signs up, "" if somebody has.
	ready func(addr string, setup wire.Secret)
}

// serverMemory is from where on the server collects garbage at once, rather than when its memory has doubled; GOMEMLIMIT overrides
// it. It is no bound: a call that needs more gets it.
const serverMemory = 192 << 20

// server keeps the records, the templates and the keys, until ctx ends. Everything it acknowledges is durable in Badger.
func server(ctx context.Context, c serverConfig) error {
	if err := os.MkdirAll(c.data, 0o700); err != nil {
		return fmt.Errorf("the data folder: %w", err)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(serverMemory)
	}
	started := time.Now().UTC()
	m := metrics.New("server", version)
	db, err := badgerdb.Open(badgerdb.Config{Dir: filepath.Join(c.data, "archive"), Logger: c.logger, Retention: c.retention})
	if err != nil {
		return err
	}
	keys := auth.New(auth.Config{Store: db})
	templates := registry.New(registry.Config{Store: db, Logger: c.logger, ProviderBaseURLs: c.providerURLs})
	records := archive.New(archive.Config{Store: db, Versions: templates, Prices: c.prices, Metrics: m, Logger: c.logger})
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
	limiter, certs := new(api.Limiter), new(liveTLS)
	limiter.Set(c.limits)
	certs.Store(c.tls)
	if c.reload != nil {
		c.reload.metrics, c.reload.logger = m, c.logger
		c.reload.prepare = func(next *cli.Context) (func(), error) {
			n, err := serverRoleOf(next)
			if err == nil && n.bootstrapKey != "" {
				_, err = keys.Bootstrap(ctx, n.bootstrapKey) // the one before stays until it is revoked
			}
			return func() {
				c.level.Set(n.level.Level())
				limiter.Set(n.limits)
				certs.Store(n.tls)
			}, err
		}
	}
	writes := api.NewTurns(records, m)
	a := api.New(api.Config{
		Name: c.name, Version: version,
		Recorder: writes, Querier: records, Analyst: records, Keeper: records,
		Templates: templates, Changes: templates, Fleet: db, Exporter: records,
		Authenticator: keys, Limiter: limiter,
		Pages: dashboard.New(dashboard.Config{
			People: people, Keys: keys, Records: records, Recorder: writes, Templates: templates, Sidecars: db, Read: readCall,
			Providers: render.Providers(), Retention: dashboard.Retention(c.retention), Version: version, Logger: c.logger,
		}),
		Metrics: m, Logger: c.logger,
	})
	p := process{
		data: c.data, logger: c.logger, ready: func(addr string) { c.ready(addr, setup) },
		api: a.NewServer(), apiListen: c.listen,
		ops: ops.Config{Metrics: m, Logger: c.logger, Status: func() any {
			return statusOfServer(c.name, started, db)
		}, Describe: func(w io.Writer) {
			inWords(w, func(t *table) { describeServer(t, statusOfServer(c.name, started, db)) })
		}},
		opsListen:  c.opsListen,
		tls:        certs,
		reload:     c.reload,
		keys:       keys,
		archive:    liveArchive{db},
		background: []func(context.Context) error{db.Run, keys.Run, watchArchive(db, m), watchDisk(c.data, m)},
		failed:     db.Failed(),
	}
	return errors.Join(p.run(ctx), db.Close())
}

// sidecarConfig is what a sidecar is started with.
type sidecarConfig struct {
	data              string
	listen, opsListen address
	tls               *tlsState // of the API's listener; nil for none
	name              string
	upstream          string
	upstreamTLS       *tlsState // nil: the system's authorities, and no certificate of our own
	spoolBytesMax     int64     // of disk that the spool takes
	spoolFreeMin      int64     // of the disk that stays free; 0 for the spool's default
	diskMax           int64     // of disk that the data folder takes
	allowHosts        []string
	preload           []string    // templates to fetch at the start
	apiKey, localKey  wire.Secret // the sidecar's own key, and what apps must present then; "" for none
	limits            api.Limits
	redact            *redact.Rules    // nil for none
	drain             time.Duration    // how long a stop waits for the spool to empty
	now               func() time.Time // the system's clock; nil for time.Now
	logger            *slog.Logger
	level             *slog.LevelVar // of logger; nil when there is no reload
	reload            *reloader      // nil for none
	ready             func(addr string)
}

// sidecarBufferBytes is for one body of the largest size and many small ones: a sidecar shall be small.
const sidecarBufferBytes = wire.BodyBytesMax + 16<<20

// sidecar takes writes into its spool and forwards them, and serves templates from its cache, until ctx ends. Everything it
// acknowledges is durable in the spool.
func sidecar(ctx context.Context, c sidecarConfig) error {
	limiter, certs, upstreamCerts := new(api.Limiter), new(liveTLS), new(liveTLS)
	limiter.Set(c.limits)
	certs.Store(c.tls)
	upstreamCerts.Store(cmp.Or(c.upstreamTLS, new(tlsState)))
	clock := api.NewClock(c.now)
	upstream, err := client.New(client.Config{URL: c.upstream, Version: version, TLS: upstreamCerts.client(), Now: clock.Now})
	if err != nil {
		return fmt.Errorf("--upstream: %w", err)
	}
	defer upstream.Close()
	if err := os.MkdirAll(c.data, 0o700); err != nil {
		return fmt.Errorf("the data folder: %w", err)
	}
	m := metrics.New("sidecar", version)
	redactor := &redact.Before{Metrics: m} // Next is the recorder below
	redactor.Set(c.redact)
	var own *proxy.OwnKey // nil for none; set below
	if c.reload != nil {
		c.reload.metrics, c.reload.logger = m, c.logger
		c.reload.prepare = func(next *cli.Context) (func(), error) {
			n, err := sidecarRoleOf(next)
			if err == nil {
				err = sameOwnKeys(c, n)
			}
			return func() {
				if own != nil {
					own.Set(n.apiKey, n.localKey)
				}
				c.level.Set(n.level.Level())
				limiter.Set(n.limits)
				redactor.Set(n.redact)
				certs.Store(n.tls)
				upstreamCerts.Store(n.upstreamTLS)
			}, err
		}
	}
	queue, err := spool.Open(spool.Config{
		Dir: filepath.Join(c.data, "spool"), BytesMax: c.spoolBytesMax, FreeMin: c.spoolFreeMin,
		DataDir: c.data, DiskMax: c.diskMax, Logger: c.logger, Metrics: m, Now: clock.Now,
	})
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
	templates, err := registry.NewCache(registry.CacheConfig{
		Dir: filepath.Join(c.data, "templates"), Upstream: upstream, Identities: keys.Identities, Metrics: m, Logger: c.logger,
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
	redactor.Next = recorder
	var authenticator api.Authenticator = keys
	if c.apiKey != "" {
		own = proxy.NewOwnKey(keys, c.apiKey, c.localKey)
		authenticator = own
	}
	a := api.New(api.Config{
		Name: c.name, Version: version,
		Recorder:      redactor,
		Querier:       upstream,
		Analyst:       upstream,
		Keeper:        upstream,
		Exporter:      upstream,
		Templates:     templates,
		Fleet:         upstream,
		Authenticator: authenticator,
		OwnKey:        c.apiKey != "", LocalKey: c.localKey != "",
		GuardBrowsers: true, Hosts: c.allowHosts, Limiter: limiter,
		BufferBytes: sidecarBufferBytes,
		Metrics:     m, Logger: c.logger, Clock: clock,
	})
	p := process{
		data: c.data, logger: c.logger, ready: c.ready,
		api: a.NewServer(), apiListen: c.listen,
		ops: ops.Config{Metrics: m, Logger: c.logger, Started: first.started, Status: func() any { return status() },
			Describe: func(w io.Writer) { inWords(w, func(t *table) { describeSidecar(t, status()) }) }},
		opsListen: c.opsListen,
		tls:       certs,
		reload:    c.reload,
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
