package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"promptspool/api/admission"
	"promptspool/api/auth"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/proxy"
	"promptspool/proxy/redact"
	"promptspool/registry"
)

// prepareServer returns what puts another configuration in force in a server that runs with c.
func prepareServer(
	c serverConfig, keys *auth.Auth, templates *registry.Registry, limiter *admission.Limiter,
	certificates *config.LiveTLS,
) config.Prepare {
	return func(next *cli.Context) (commit func(), err error) {
		n, err := serverRoleOf(next)
		if err != nil {
			return nil, err
		}
		if n.bootstrapKey != "" {
			// The key before it stays until it is revoked.
			if _, err := keys.Bootstrap(context.Background(), n.bootstrapKey); err != nil {
				return nil, err
			}
		}

		return func() {
			c.level.Set(n.level.Level())
			limiter.Set(n.limits)
			certificates.Store(n.tls)
			templates.SetProviderBaseURLs(n.providerURLs)
			if n.archive != c.archive {
				c.logger.Warn("--archive names another database now, or another password; " +
					"this counts after a restart only")
			}
		}, nil
	}
}

// sidecarLive is what of a sidecar follows its configuration while it runs.
type sidecarLive struct {
	limiter              *admission.Limiter
	certificates         *config.LiveTLS
	upstreamCertificates *config.LiveTLS
	redactor             *redact.Before
	ownKey               *proxy.OwnKey // nil if the sidecar has no key of its own
}

// prepareSidecar returns what puts another configuration in force in a sidecar that runs with c.
func prepareSidecar(c sidecarConfig, live sidecarLive) config.Prepare {
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
			if live.ownKey != nil {
				live.ownKey.Set(n.apiKey, n.localKey)
			}
			c.level.Set(n.level.Level())
			live.limiter.Set(n.limits)
			live.redactor.Set(n.redact)
			live.certificates.Store(n.tls)
			live.upstreamCertificates.Store(n.upstreamTLS)
		}, nil
	}
}
