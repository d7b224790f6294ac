package main

import (
	"cmp"
	"context"

	"github.com/urfave/cli/v2"

	"promptspool/api/admission"
	"promptspool/api/auth"
	"promptspool/metrics"
	"promptspool/proxy"
	"promptspool/proxy/redact"
	"promptspool/registry"
)

// serverLive is what of a server follows its configuration while it runs.
type serverLive struct {
	limiter *admission.Limiter
	certs   *liveTLS
}

// newServerLive puts c in force, and has its reloader put in force what comes after it.
func newServerLive(c serverConfig, keys *auth.Auth, templates *registry.Registry, m *metrics.Metrics) *serverLive {
	l := &serverLive{new(admission.Limiter), new(liveTLS)}
	l.limiter.Set(c.limits)
	l.certs.Store(c.tls)
	if c.reload == nil {
		return l
	}
	c.reload.metrics, c.reload.logger = m, c.logger
	c.reload.prepare = func(next *cli.Context) (func(), error) {
		n, err := serverRoleOf(next)
		if err == nil && n.bootstrapKey != "" {
			_, err = keys.Bootstrap(context.Background(), n.bootstrapKey) // the one before stays until it is revoked
		}
		return func() {
			c.level.Set(n.level.Level())
			l.limiter.Set(n.limits)
			l.certs.Store(n.tls)
			templates.SetProviderBaseURLs(n.providerURLs)
			if n.archive != c.archive {
				c.logger.Warn("--archive names another database now, or another password; this counts after a restart only")
			}
		}, err
	}
	return l
}

// sidecarLive is what of a sidecar follows its configuration while it runs.
type sidecarLive struct {
	limiter              *admission.Limiter
	certs, upstreamCerts *liveTLS
	redactor             *redact.Before // its Next is set later
	own                  *proxy.OwnKey  // set later; nil if the sidecar has no key of its own
}

// newSidecarLive puts c in force, and has its reloader put in force what comes after it.
func newSidecarLive(c sidecarConfig, m *metrics.Metrics) *sidecarLive {
	l := &sidecarLive{limiter: new(admission.Limiter), certs: new(liveTLS), upstreamCerts: new(liveTLS), redactor: &redact.Before{Metrics: m}}
	l.limiter.Set(c.limits)
	l.certs.Store(c.tls)
	l.upstreamCerts.Store(cmp.Or(c.upstreamTLS, new(tlsState)))
	l.redactor.Set(c.redact)
	if c.reload == nil {
		return l
	}
	c.reload.metrics, c.reload.logger = m, c.logger
	c.reload.prepare = func(next *cli.Context) (func(), error) {
		n, err := sidecarRoleOf(next)
		if err == nil {
			err = sameOwnKeys(c, n)
		}
		return func() {
			if l.own != nil {
				l.own.Set(n.apiKey, n.localKey)
			}
			c.level.Set(n.level.Level())
			l.limiter.Set(n.limits)
			l.redactor.Set(n.redact)
			l.certs.Store(n.tls)
			l.upstreamCerts.Store(n.upstreamTLS)
		}, err
	}
	return l
}
