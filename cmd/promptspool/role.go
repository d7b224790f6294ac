package main

import (
	"context"
	"log/slog"

	"github.com/urfave/cli/v2"

	"promptspool/api/admission"
	"promptspool/api/auth"
	"promptspool/api/auth/oidc"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/proxy"
	"promptspool/proxy/redact"
	"promptspool/registry"
)

// roleConfig is what either role is started with.
type roleConfig struct {
	data              string
	name              string
	listen, opsListen config.Address
	otlpListen        config.Address       // for OpenTelemetry exporters only; At is "" for none
	tls               *config.Certificates // of the API's listener; nil for none
	limits            admission.Limits
	keepPlumbing      bool // of the spans of OpenTelemetry
	logger            *slog.Logger
	level             *slog.LevelVar // of logger
	source            config.Source  // of these settings
}

// roleFlags are the settings that `server`, `sidecar` and `up` share, besides their listeners and log.
func roleFlags() []cli.Flag {
	return []cli.Flag{
		config.NameFlag(),
		config.TextFlag("otlp-listen", "",
			"one more `address`, for OpenTelemetry exporters only: host:port or unix:/path. "+
				"Where they send unless told otherwise is 127.0.0.1:4318 (default: none)"),
		config.ChoiceFlag("otlp-keep", "genai",
			"`which` spans of OpenTelemetry are kept (genai: not those of HTTP, database and similar "+
				"instrumentation that say nothing about a model call)", "genai", "all"),
	}
}

// roleConfigOf reads roleFlags, and the listeners and log of the command that runs.
func roleConfigOf(r *config.Reader) roleConfig {
	role := roleConfig{
		name:       r.Name(),
		listen:     r.Address("listen"),
		opsListen:  r.Address("ops-listen"),
		otlpListen: r.AddressOr("otlp-listen"),

		keepPlumbing: r.OneOf("otlp-keep") == "all",
	}
	role.logger, role.level = r.Logger()
	for variable, meant := range r.Misspelt() {
		role.logger.Warn("a variable is ignored, because no setting has its name",
			"variable", variable, "did_you_mean", meant)
	}
	return role
}

// limitFlags bound what one key may do.
func limitFlags() []cli.Flag {
	return config.Group("Limits",
		config.TextFlag("key-calls-max", "",
			"the `number` of requests that one key may make in a second; beyond it 429 (default: no bound)"),
		config.TextFlag("key-bytes-max", "",
			"the `size` of bodies that one key may send in a second; beyond it 429 (default: no bound)"),
	)
}

// limitsOf reads limitFlags.
func limitsOf(r *config.Reader) admission.Limits {
	return admission.Limits{
		Calls: float64(r.Count("key-calls-max", 1_000_000)),
		Bytes: float64(r.SizeOr("key-bytes-max", 0)),
	}
}

// prepareServer returns what puts another configuration in force in a server that runs with c.
func prepareServer(
	c serverConfig, keys *auth.Auth, templates *registry.Registry, limiter *admission.Limiter,
	certificates *config.LiveTLS, issuer *oidc.Issuer,
) config.Prepare {
	return func(next *cli.Context) (commit func(), err error) {
		n, err := serverRoleOf(next)
		if err != nil {
			return nil, err
		}
		if n.bootstrapKey != "" {
			if err := bootstrap(context.Background(), keys, n.bootstrapKey, c.logger); err != nil {
				return nil, err
			}
		}

		return func() {
			c.level.Set(n.level.Level())
			limiter.Set(n.limits)
			certificates.Store(n.tls)
			templates.SetProviderBaseURLs(n.providerURLs)
			// The issuer itself stays: people's sessions and names there are of this one.
			n.signIn.issuer.Issuer, n.signIn.issuer.ClientID = c.signIn.issuer.Issuer, c.signIn.issuer.ClientID
			issuer.Set(n.signIn.issuer)
			if n.archive != c.archive {
				c.logger.Warn("--archive names another database now, or another password; " +
					"this counts after a restart only")
			}
		}, nil
	}
}

// bootstrap makes the bootstrap key. Those before it stay until they are revoked, and are logged.
func bootstrap(ctx context.Context, keys *auth.Auth, key wire.Secret, logger *slog.Logger) error {
	k, err := keys.Bootstrap(ctx, key)
	if err != nil {
		return err
	}

	all, err := keys.Keys(ctx)
	for _, old := range all {
		if old.Name == k.Name && old.AccountID == k.AccountID && old.ID != k.ID && old.RevokedAt == nil {
			logger.Warn("an earlier bootstrap key still works; revoke it with `promptspool keys revoke`",
				"key", k.ID, "earlier", old.ID)
		}
	}

	return err
}

// prepareSidecar returns what puts another configuration in force in a sidecar that runs with c.
//
// ownKey is nil if the sidecar has no own key.
func prepareSidecar(
	c sidecarConfig, ownKey *proxy.OwnKey, redactor *redact.Before, limiter *admission.Limiter,
	certificates, upstreamCertificates *config.LiveTLS,
) config.Prepare {
	return func(next *cli.Context) (commit func(), err error) {
		n, err := sidecarRoleOf(next)
		if err == nil {
			err = sameOwnKeys(c, n)
		}
		if err != nil {
			return nil, err
		}

		// From here on nothing can fail: either all of a configuration is in force, or
		// none of it.
		return func() {
			if ownKey != nil {
				ownKey.Set(n.apiKey, n.localKey)
			}
			c.level.Set(n.level.Level())
			limiter.Set(n.limits)
			redactor.Set(n.redact)
			certificates.Store(n.tls)
			upstreamCertificates.Store(n.upstreamTLS)
		}, nil
	}
}
