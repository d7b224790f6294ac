package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"promptspool/api"
	"promptspool/api/access"
	"promptspool/api/admission"
	"promptspool/api/auth"
	"promptspool/api/auth/oidc"
	"promptspool/api/calls"
	"promptspool/api/client"
	"promptspool/api/dashboard"
	"promptspool/api/dashboard/frame"
	"promptspool/api/ops"
	"promptspool/api/webhook"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/datafolder"
	"promptspool/cmd/promptspool/internal/machine"
	"promptspool/cmd/promptspool/internal/spooltool"
	"promptspool/metrics"
	"promptspool/proxy"
	"promptspool/proxy/redact"
	"promptspool/registry"
	"promptspool/registry/render"
	"promptspool/spool/archive/alerts"
	"promptspool/spool/archive/records"
	"promptspool/spool/queue"
)

// This file shows what each role is made of. A role opens its storage, builds its parts from the bottom up, each out
// of finished ones, and hands them to a process, which runs them until ctx ends.

// serverMemory is the heap size from which a server's garbage is collected eagerly, rather than when the heap has
// doubled. GOMEMLIMIT overrides it. It is not a bound: a request that needs more gets it.
const serverMemory = 192 << 20

// serverConnectionsMax bounds a server's connections. All of them in the middle of a
// request take 400 MB.
const serverConnectionsMax = 16 << 10

// server keeps the records, the templates and the keys, until ctx ends.
//
// Everything it acknowledges is durable in its database.
func server(ctx context.Context, c serverConfig) error {
	starting, started := context.WithCancel(ctx)
	defer started()
	go machine.ExtendStart(starting)

	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(serverMemory)
	}

	folder, err := datafolder.Open(c.data, "server", c.logger)
	if err != nil {
		return err
	}
	defer folder.Close()

	// After a crash on a bad block, every file is read before it is mapped.
	storage, err := openDatabase(ctx, c, folder.DiskFailed())
	if err == nil {
		err = folder.Clear()
	}
	if err != nil {
		folder.Note(err)
		return err
	}

	err = serveDatabase(ctx, c, storage, started)
	folder.Note(err)

	return errors.Join(err, storage.db.Close())
}

// serveDatabase is a server on its open database. It calls started when it takes requests.
func serveDatabase(ctx context.Context, c serverConfig, storage opened, started func()) error {
	startedAt := time.Now().UTC()
	m := metrics.New("server", version)
	if c.usage != nil {
		m.Registry.MustRegister(c.usage)
	}
	db := storage.db

	// Identity: the keys of apps, and the people who sign in at the dashboard.
	keys := auth.New(auth.Config{Store: db, Now: c.now})
	c.signIn.people.Store = db
	people := auth.NewPeople(c.signIn.people)
	issuer := oidc.New(c.signIn.issuer)
	if c.bootstrapKey != "" {
		if err := bootstrap(ctx, keys, c.bootstrapKey, c.logger); err != nil {
			return err
		}
	}
	setup, err := people.Setup(ctx)
	if err != nil {
		return err
	}

	// Templates.
	templates := registry.New(registry.Config{
		Store:            db,
		Logger:           c.logger,
		Audit:            db,
		ProviderBaseURLs: c.providerURLs,
	})

	// Records: folded from events, which wait in line for the database.
	service := records.New(records.Config{
		Store:    db,
		Versions: templates,
		Prices:   c.prices,
		Metrics:  m,
		Logger:   c.logger,
		Audit:    db,

		Definitions: db,
	})
	watching := alerts.New(alerts.Config{Store: db, Records: db, Logger: c.logger, Now: c.now})
	writes := admission.NewWriteQueue(service, m)

	// Notices, which go to the targets of their projects.
	// Several servers may have one PostgreSQL, and need the same key.
	if c.sealKey == "" && c.archive == "" {
		c.sealKey, err = keyFile(filepath.Join(c.data, "seal.key"))
		if err != nil {
			return fmt.Errorf("the key that seals targets: %w", err)
		}
	}
	targets := webhook.New(webhook.Config{
		Store:     db,
		Key:       c.sealKey,
		Allow:     c.webhookAllow,
		PublicURL: c.public.or(""),
		Metrics:   m,
		Logger:    c.logger,
	})

	// Parts that follow the configuration while the server runs.
	limiter, certificates := new(admission.Limiter), config.NewLiveTLS(c.tls)
	limiter.Set(c.limits)
	settings := config.NewReloader(c.source, m, c.logger,
		prepareServer(c, keys, templates, limiter, certificates, issuer))

	// HTTP.
	drops := new(api.DropCounter)
	fleet := fleetAndDrops{db, drops}
	connections, opsConnections := machine.ConnectionBounds(serverConnectionsMax, ops.ConnectionsMax, c.logger)
	pages := dashboard.New(dashboard.Config{
		Config: frame.Config{
			People:          people,
			Keys:            keys,
			Scoring:         db,
			Views:           db,
			Issuer:          c.signIn.at(issuer),
			Sidecars:        fleet,
			Version:         version,
			Logger:          c.logger,
			SidecarURL:      c.sidecarURL,
			PrintedKey:      c.printedKey,
			PublicURL:       c.public.url,
			CookiesInsecure: c.public.cookiesInsecure,
		},
		Records:   service,
		Recorder:  writes,
		Templates: templates,
		Providers: render.Providers(),
		Retention: dashboard.Retention(c.retention),
		Targets:   targets,
		Alerts:    watching,
	})
	handlers := api.New(api.Config{
		Name:           c.name,
		Version:        version,
		Recorder:       writes,
		Records:        service,
		Audit:          db,
		Blueprint:      calls.ReplyBlueprint,
		Templates:      templates,
		Changes:        templates,
		Fleet:          fleet,
		Scoring:        db,
		Views:          db,
		Targets:        targets,
		Alerts:         watching,
		Pages:          pages,
		BasePath:       c.public.basePath(),
		Proxies:        c.public.proxies,
		KeepPlumbing:   c.keepPlumbing,
		Authenticator:  keys,
		Limiter:        limiter,
		ConnectionsMax: connections,
		Drops:          drops,
		Metrics:        m,
		Logger:         c.logger,
		Clock:          api.NewClock(c.now),
	})

	// Operations.
	health := &dbHealth{metrics: m, logger: c.logger}
	status := func() serverStatus { return statusOfServer(c.name, startedAt, storage, health, drops) }
	operations := ops.Config{
		Metrics:        m,
		Logger:         c.logger,
		ConnectionsMax: opsConnections,
		Ready:          health.err,
		Status:         func() any { return status() },
	}

	p := process{
		role: c.roleConfig,
		api:  handlers.NewServer(),
		tls:  certificates,
		ops:  operations,
		control: ops.ControlConfig{
			Server:   c.public.or(""),
			Keys:     keys,
			Audit:    db,
			People:   people.Operator(keys),
			Archive:  storage.tools,
			Settings: settings.Settings,
		},
		background: []func(context.Context) error{
			db.Run,
			keys.Run,
			templates.Watch,
			service.DoLeft,
			targets.Run,
			watching.Run,
			func(ctx context.Context) error { return templates.WatchKeys(ctx, keys.Keys) },
			health.watch(storage.remote),
			watchArchive(storage, m),
			watchProjects(db, c.usage),
			watchDisk(c.data, m, storage.space),
			settings.Run,
		},
		failed:  storage.failed,
		started: started,
		ready:   func(at addresses) { c.ready(at, setup) },
	}
	return p.run(ctx)
}

// sidecarConnectionsMax bounds a sidecar's connections. All of them in the middle of a
// request take 25 MB. If an app has more open, the idle one that was used least recently
// is closed.
const sidecarConnectionsMax = 1024

// sidecar takes writes into its spool and forwards them, and serves templates from its cache, until ctx ends.
//
// Everything it acknowledges is durable in the spool.
func sidecar(ctx context.Context, c sidecarConfig) error {
	startedAt := time.Now().UTC()
	starting, started := context.WithCancel(ctx)
	defer started()
	go machine.ExtendStart(starting)
	m := metrics.New("sidecar", version)

	// The server. It may be away: nothing below waits for it.
	clock := api.NewClock(c.now)
	upstreamCertificates := config.NewLiveTLS(c.upstreamTLS)
	upstream, err := client.New(client.Config{
		URL:     c.upstream,
		Version: version,
		TLS:     upstreamCertificates.Client(),
		Now:     clock.Now,
	})
	if err != nil {
		return fmt.Errorf("--upstream: %w", err)
	}
	defer upstream.Close()

	// Storage: the data folder, which no other process may use, and the spool in it.
	folder, err := datafolder.Open(c.data, "sidecar", c.logger)
	if err != nil {
		return err
	}
	defer folder.Close()
	spool, err := queue.Open(queue.Config{
		Dir:      datafolder.Spool(c.data),
		BytesMax: c.spoolBytesMax,
		FreeMin:  c.spoolFreeMin,
		DataDir:  c.data,
		DiskMax:  c.diskMax,
		Logger:   c.logger,
		Metrics:  m,
		Now:      clock.Now,
	})
	if err == nil {
		// The spool always reads what it opens.
		err = folder.Clear()
	}
	if err != nil {
		return err
	}
	// Closing it a second time is harmless.
	defer spool.Close()

	// Ids and accepted times do not go back over a restart, whatever the machine's clock does.
	_, newest := spool.Newest()
	clock.StartAfter(newest)

	// Identity: what the server said of the apps' keys, and the sidecar's own key, if it has one.
	keys, err := proxy.OpenKeyring(proxy.KeyringConfig{
		Dir:           filepath.Join(c.data, "keys"),
		Asker:         upstream,
		Spool:         spool,
		SpoolBytesMax: c.spoolBytesMax,
		Now:           serverTime(clock, upstream),
		Logger:        c.logger,
	})
	if err != nil {
		return err
	}
	defer keys.Close()
	var authenticator api.Authenticator = keys
	var ownKey *proxy.OwnKey
	if c.apiKey != "" {
		ownKey = proxy.NewOwnKey(keys, c.apiKey, c.localKey)
		authenticator = ownKey
	}
	fetching := func() []wire.Identity { return keys.Identities(access.Scope("fetch-template")) }
	sidecarID, err := idOf(c.data)
	if err != nil {
		return err
	}

	// Templates: from the cache on disk, also while the server is away.
	work := machine.RoomOf(machine.CgroupMemory())
	templates, err := registry.NewCache(registry.CacheConfig{
		Dir:        filepath.Join(c.data, "templates"),
		Upstream:   upstream,
		Identities: fetching,
		Rekeyed:    keys.Doubt,
		Metrics:    m,
		Logger:     c.logger,
		Room:       work,
	})
	if err != nil {
		return err
	}
	preloading := &preload{
		wanted:   c.preload,
		cache:    templates,
		keys:     keys,
		known:    fetching,
		apiKey:   cmp.Or(c.apiKey, c.introduces),
		logger:   c.logger,
		deadline: time.Now().Add(preloadMax),
	}

	// Forwarding: what the API accepts is redacted, then spooled; the forwarder delivers it.
	recorder := proxy.New(spool, keys, templates, c.logger)
	redactor := &redact.Before{Next: recorder, Metrics: m}
	redactor.Set(c.redact)
	forwarder := proxy.NewForwarder(spool, keys, upstream, m, c.logger)
	drops := new(api.DropCounter)
	status := func() sidecarStatus {
		return sidecarStatus{
			Role:         "sidecar",
			ID:           sidecarID,
			Version:      version,
			Name:         c.name,
			StartedAt:    startedAt,
			Upstream:     c.upstream,
			Away:         forwarder.Away(),
			Waits:        forwarder.Waits(),
			ClockAhead:   clockAhead(upstream),
			Spool:        spool.Status(),
			DroppedToday: drops.Of(""),
		}
	}
	heartbeats := proxy.Heartbeats{
		Beater:     upstream,
		Identities: func() []wire.Identity { return keys.Identities(access.Scope("sync-heartbeat")) },
		Away:       forwarder.Away,
		Logger:     c.logger,
		Status:     func() wire.Heartbeat { return status().heartbeat() },
	}

	// Parts that follow the configuration while the sidecar runs.
	limiter, certificates := new(admission.Limiter), config.NewLiveTLS(c.tls)
	limiter.Set(c.limits)
	settings := config.NewReloader(c.source, m, c.logger,
		prepareSidecar(c, ownKey, redactor, limiter, certificates, upstreamCertificates))

	// HTTP.
	connections, opsConnections := machine.ConnectionBounds(sidecarConnectionsMax, ops.ConnectionsMax, c.logger)
	bufferBytes, bodyBytesMax := machine.BodyBounds(machine.CgroupMemory())
	if bodyBytesMax < wire.BodyBytesMax {
		c.logger.Warn("the memory limit bounds the bodies; 96 MiB are enough for those of every size",
			"body_bytes_max", bodyBytesMax)
	}
	handlers := api.New(api.Config{
		Name:                 c.name,
		Version:              version,
		Recorder:             redactor,
		RecorderKeepsNothing: true,
		Upstream:             upstream,
		Blueprint:            calls.ReplyBlueprint,
		Templates:            templates,
		Pages:                dashboard.NewDocs(version, c.logger),
		Authenticator:        authenticator,
		OwnKey:               c.apiKey != "",
		LocalKey:             c.localKey != "",
		KeepPlumbing:         c.keepPlumbing,
		GuardBrowsers:        true,
		MaskBatches:          true,
		Hosts:                c.allowHosts,
		Limiter:              limiter,
		BufferBytes:          bufferBytes,
		BodyBytesMax:         bodyBytesMax,
		ConnectionsMax:       connections,
		Room:                 work,
		Drops:                drops,
		Metrics:              m,
		Logger:               c.logger,
		Clock:                clock,
		ClockID:              sidecarID,
	})

	// Operations.
	operations := ops.Config{
		Metrics:        m,
		Logger:         c.logger,
		ConnectionsMax: opsConnections,
		Started:        preloading.started,
		Ready:          spool.Ready,
		Status:         func() any { return status() },
	}

	p := process{
		role:    c.roleConfig,
		api:     handlers.NewServer(),
		tls:     certificates,
		ops:     operations,
		control: ops.ControlConfig{Spool: spooltool.Live{Queue: spool, Proxy: recorder}, Settings: settings.Settings},
		background: []func(context.Context) error{
			spool.Run,
			templates.Run,
			keys.Run,
			recorder.Run,
			forwarder.Run,
			heartbeats.Run,
			preloading.run,
			watchSkew(upstream, m, c.logger),
			watchDisk(c.data, m, spool.FreeMin),
			watchTemplates(templates, m),
			settings.Run,
		},
		failed:  spool.Failed(),
		lingers: true,
		drain:   func(ctx context.Context) { drainSpool(ctx, spool, c) },
		started: started,
		ready:   c.ready,
	}
	return errors.Join(p.run(ctx), spool.Close())
}
