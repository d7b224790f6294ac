package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"

	"promptspool/api/client"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/machine"
	"promptspool/proxy"
	"promptspool/proxy/redact"
	"promptspool/registry"
	"promptspool/spool/queue"
)

const (
	spoolBytesDefault = "1GiB"
	drainDefault      = "10s"
	drainMax          = time.Hour
	diskBesideSpool   = 256 << 20 // what --disk-max leaves for keys and templates when it is not given
)

// spoolFlags are those of a sidecar that `up` has as well.
func spoolFlags() []cli.Flag {
	return config.Group("Spool",
		config.TextFlag("spool-bytes-max", spoolBytesDefault,
			"the `size` of disk that the spool may take, such as 8GiB; beyond it new writes get 503"),
		config.TextFlag("spool-free-min", "",
			"the `size` that stays free on the spool's disk; below it new writes get 503 "+
				"(default: 64MiB, or a sixteenth of a disk below 1GiB)"),
		config.TextFlag("disk-max", "",
			"the `size` that the whole data folder may take; beyond it new writes get 503 "+
				"(default: --spool-bytes-max and 256MiB more)"),
		config.ListFlag("allow-host",
			"a Host `name`, besides localhost, by which the sidecar may be called; may be repeated"),
		config.ListFlag("template-preload",
			"a `template` to fetch at the start, so that it is there when the server goes away: "+
				"NAME, NAME@label:LABEL, or label:LABEL for all with the label; may be repeated"),
		config.TextFlag("drain", drainDefault, "the `time` that a stop waits for the spool to empty"),
	)
}

// sidecarCommand runs the role sidecar.
func sidecarCommand() *cli.Command {
	flags := []cli.Flag{
		config.FileFlag(),
		config.TextFlag("data", "", "the `folder` for spool, keys and cached templates (created if missing)"),
	}
	apiKey := config.SecretFlags("api-key",
		"the `key` that the sidecar sends in place of what apps send, so that they hold no secret")
	localKey := config.SecretFlags("local-key",
		"with --api-key, the `key` that apps must present (default: they need none)")
	redactSecret := config.SecretFlags("redact-secret",
		"the `secret` that keys the hashes of redacted values; the same one makes the same hashes")

	c := config.Command("sidecar", "take writes on localhost and forward them to a server", runSidecar,
		flags, config.UpstreamFlags(), config.ListenFlags(config.SidecarListen, config.SidecarOpsListen), spoolFlags(),
		apiKey, localKey, redactSecret, limitFlags(), roleFlags(), config.LogFlags("info"))
	c.Before = config.Apply
	return c
}

func runSidecar(c *cli.Context) error {
	role, err := sidecarRoleOf(c)
	if err != nil {
		return err
	}

	role.source = config.SourceOf(newApp, c)
	go machine.TendMemory(c.Context)

	return sidecar(c.Context, role)
}

// sidecarRoleOf reads the settings of `sidecar`, and reports every error in them.
func sidecarRoleOf(c *cli.Context) (sidecarConfig, error) {
	r := config.Read(c)
	role := sidecarConfigOf(r)
	role.tls = r.ListenTLS()
	role.upstreamTLS = r.Certificates("upstream-cert-file", "upstream-key-file", "upstream-ca-file")
	role.apiKey = r.Secret("api-key")
	role.localKey = r.Secret("local-key")
	if role.localKey != "" && role.apiKey == "" {
		r.Note(config.Usagef(c, "%s says what apps present in place of a key of the server's, so it needs --api-key",
			config.SettingName(c, "local-key")))
	}
	role.redact = r.RedactRules()
	role.limits = limitsOf(r)
	role.upstream = r.UpstreamURL()

	// A command line that is only incomplete, the commonest slip, is told just that.
	if r.Sound() {
		role.data, role.upstream = r.Required("data"), r.Required("upstream")
	}
	if _, err := client.New(client.Config{URL: role.upstream}); err != nil && role.upstream != "" {
		r.Note(fmt.Errorf("%s: %w", config.SettingName(c, "upstream"), err))
	}

	return role, r.Err()
}

// sidecarConfigOf reads the settings that `sidecar` and `up` share.
func sidecarConfigOf(r *config.Reader) sidecarConfig {
	bytesMax := r.Size("spool-bytes-max")
	role := sidecarConfig{
		roleConfig:    roleConfigOf(r),
		spoolBytesMax: bytesMax,
		spoolFreeMin:  r.SizeOr("spool-free-min", 0),
		diskMax:       r.SizeOr("disk-max", bytesMax+diskBesideSpool),
		drain:         min(r.Duration("drain"), drainMax),
		allowHosts:    r.Hosts("allow-host"),
		preload:       r.List("template-preload"),
	}
	if bytesMax > 0 && role.diskMax < bytesMax && r.Text("disk-max") != "" {
		r.Reject("disk-max",
			"is less than --spool-bytes-max, "+r.Text("spool-bytes-max")+"; the data folder holds the spool")
	}
	return role
}

// sameOwnKeys rejects a reload that gives or takes away a key of the sidecar's own.
//
// Which calls the sidecar serves depends on whether there is one. Another key in its place is taken over.
func sameOwnKeys(before, after sidecarConfig) error {
	switch {
	case (before.apiKey == "") != (after.apiKey == ""):
		return errors.New("--api-key was given or taken away, which needs a restart")
	case (before.localKey == "") != (after.localKey == ""):
		return errors.New("--local-key was given or taken away, which needs a restart")
	}
	return nil
}

// drainSpool gives the forwarder time to deliver what is left, and logs what stays, and where.
func drainSpool(ctx context.Context, spool *queue.Queue, c sidecarConfig) {
	ctx, cancel := context.WithTimeout(ctx, c.drain)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()

	// The forwarder is still running. Nothing new comes, because the API has ended.
	for spool.Status().Events > 0 && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}

	left := spool.Status()
	if left.Events > 0 {
		c.logger.Warn("stopping with events that the server does not have yet; "+
			"they stay in the spool and go out after the next start, or by `promptspool spool drain`",
			"events", left.Events, "bytes", left.Bytes, "data", c.data)
	} else {
		c.logger.Info("the spool is empty")
	}

	if left.Held+left.Dead > 0 {
		c.logger.Warn("events that the server refuses stay on disk; `promptspool dead list` shows them",
			"held", left.Held, "dead_letters", left.Dead, "data", c.data)
	}
}

// sidecarConfig is what a sidecar is started with.
type sidecarConfig struct {
	roleConfig
	upstream         string
	upstreamTLS      *config.Certificates // nil means the system's authorities, and no client certificate
	spoolBytesMax    int64                // of disk that the spool takes
	spoolFreeMin     int64                // of the disk that stays free; 0 for the spool's default
	diskMax          int64                // of disk that the data folder takes
	allowHosts       []string
	preload          []string         // templates to fetch at the start
	apiKey, localKey wire.Secret      // the sidecar's own key, and the one that apps must present then; "" for none
	introduces       wire.Secret      // a key of the server's project, which lists the sidecar before its first call
	redact           *redact.Rules    // nil for none
	drain            time.Duration    // how long a stop waits for the spool to empty
	now              func() time.Time // the system's clock; nil for time.Now
	ready            func(addresses)
}

// preloadMax is how long /startupz waits for templates to preload. They are fetched for as long as it takes.
const preloadMax = 10 * time.Second

// preload makes a sidecar known to the server when it starts, and fetches templates.
type preload struct {
	wanted []string // see registry.Cache.Preload
	cache  *registry.Cache
	keys   *proxy.Keyring
	known  func() []wire.Identity // that may fetch templates, one for each account
	apiKey wire.Secret            // "" if the sidecar knows none
	logger *slog.Logger

	deadline time.Time
	done     atomic.Bool
}

// started returns what a start still waits for, nil if nothing.
func (p *preload) started() error {
	if len(p.wanted) == 0 || p.done.Load() || time.Now().After(p.deadline) {
		return nil
	}
	return errors.New("the templates of --template-preload are being fetched")
}

// run fetches for each account that the sidecar knows a key of: from earlier runs, or by --api-key.
func (p *preload) run(ctx context.Context) error {
	defer p.done.Store(true)

	// On its very first start, a sidecar with a key waits until the server has accepted it.
	// From then on it sends heartbeats, so the server lists it before its first call.
	ids := p.known()
	for p.apiKey != "" && len(ids) == 0 && ctx.Err() == nil {
		if id, err := p.keys.Authenticate(ctx, p.apiKey); err == nil && id.Verified {
			ids = append(ids, id)
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}

	if len(p.wanted) == 0 {
		return nil
	}
	if len(ids) == 0 && ctx.Err() == nil {
		p.logger.Warn("no key is known yet, so no template is preloaded; " +
			"give the sidecar --api-key, or let an app call once")
	}
	for _, id := range ids {
		if err := p.cache.Preload(ctx, id, p.wanted); err != nil && ctx.Err() == nil {
			p.logger.Warn("not all templates were preloaded", "project", id.Account, "error", err)
		}
	}
	return nil
}
