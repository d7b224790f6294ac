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
