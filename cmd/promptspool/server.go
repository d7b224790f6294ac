package main

import (
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/api/admission"
	"promptspool/api/wire"
	"promptspool/registry/render"
	"promptspool/spool/archive"
)

const (
	serverListen     = "127.0.0.1:8788"
	serverOpsListen  = "127.0.0.1:9788"
	sidecarListen    = "127.0.0.1:8787"
	sidecarOpsListen = "127.0.0.1:9787"
)

func bootstrapFlags() []cli.Flag {
	return secretFlags("bootstrap-key", "make the account 'default' with exactly this `key`, of scope full; at least 32 characters")
}

// limitFlags bound what one key may do.
func limitFlags() []cli.Flag {
	return []cli.Flag{
		stringFlag("key-calls-max", "", "the `number` of calls that one key may make in a second; beyond it 429; if absent no bound"),
		stringFlag("key-bytes-max", "", "the `size` of bodies that one key may send in a second; beyond it 429; if absent no bound"),
	}
}

// retentionFlags say what a server keeps.
func retentionFlags() []cli.Flag {
	return []cli.Flag{
		stringFlag("retention-age", "", "the `duration` for which records are kept, such as 2160h; older ones are deleted; if absent for ever"),
		stringFlag("retention-bytes", "", "the `size` of bodies, as they were sent, that is kept of each account; beyond it the oldest records are deleted; if absent no bound"),
	}
}

// retention reads retentionFlags.
func (v *values) retention() archive.Retention {
	r := archive.Retention{Bytes: v.sizeOr("retention-bytes", 0)}
	if v.text("retention-age") != "" {
		r.Age = v.duration("retention-age")
	}
	return r
}

// limits reads limitFlags.
func (v *values) limits() admission.Limits {
	return admission.Limits{Calls: float64(v.count("key-calls-max", 1_000_000)), Bytes: float64(v.sizeOr("key-bytes-max", 0))}
}

func serverCommand() *cli.Command {
	flags := []cli.Flag{configFlag(), stringFlag("data", "", "the `folder` of the archive; made when absent"), nameFlag(), signUpFlag(), pricesFlag(), providerURLFlag()}
	flags = append(flags, archiveFlags()...)
	flags = append(flags, bootstrapFlags()...)
	flags = append(flags, listenFlags(serverListen, serverOpsListen)...)
	flags = append(flags, limitFlags()...)
	flags = append(flags, retentionFlags()...)
	flags = append(flags, stringFlag("free-min", "",
		"the `size` that stays free on the archive's disk; below it writes get 503; if absent 256MiB, or a sixteenth of a disk below 4GiB"))
	return &cli.Command{
		Name:   "server",
		Usage:  "keep records, templates and keys",
		Flags:  append(flags, logFlags("info")...),
		Before: applyConfig,
		Action: func(c *cli.Context) error {
			config, err := serverRoleOf(c)
			if err != nil {
				return err
			}
			config.reload = newReloader(c)
			scheme := "http"
			if config.tls.cert != nil {
				scheme = "https"
			}
			config.ready = func(addr string, setup wire.Secret) { welcome(c.App.Writer, scheme, addr, setup) }
			return server(c.Context, config)
		},
	}
}

func signUpFlag() cli.Flag {
	return stringFlag("signup", string(wire.SignUpInvite), "who may sign up at the dashboard: `invite` (whom an owner invites), open (everybody, each into an account of their own) or closed")
}

func signUpOf(c *cli.Context) (wire.SignUp, error) {
	switch s := wire.SignUp(text(c, "signup")); s {
	case wire.SignUpInvite, wire.SignUpOpen, wire.SignUpClosed:
		return s, nil
	default:
		return "", wrong(c, "signup", string(s), "is not one of invite, open, closed")
	}
}

// welcome tells whoever started a fresh server how to sign up. It is printed, not logged: logs are kept and read by others.
func welcome(w io.Writer, scheme, addr string, setup wire.Secret) {
	if setup != "" {
		_, _ = fmt.Fprintf(w, "Nobody has signed up yet. Open %s://%s/sign-up, with the setup code %s\n", scheme, addr, string(setup))
	}
}

// serverRoleOf reads the settings of `server`.
func serverRoleOf(c *cli.Context) (serverConfig, error) {
	v := &values{c: c}
	log := v.logging()
	signUp, err := signUpOf(c)
	v.note(err)
	table, err := pricesOf(c)
	v.note(err)
	config := serverConfig{
		signUp: signUp, prices: table, providerURLs: v.providerURLs(),
		data: v.need("data"), archive: v.archiveSecret(), listen: v.address("listen"), opsListen: v.address("ops-listen"), name: v.name(),
		bootstrapKey: v.secret("bootstrap-key"), limits: v.limits(), tls: v.listenTLS(), retention: v.retention(),
		freeMin: v.sizeOr("free-min", 0),
	}
	if log != nil {
		config.logger, config.level = log.Logger, log.level
	}
	return config, v.err()
}

func providerURLFlag() cli.Flag {
	return listFlag("provider-base-url", "what a template's `PROVIDER=URL` tells the apps as provider_base_url; may be repeated")
}

// providerURLs reads --provider-base-url.
func (v *values) providerURLs() wire.ProviderBaseURLs {
	urls := wire.ProviderBaseURLs{}
	for _, pair := range texts(v.c, "provider-base-url") {
		provider, text, ok := strings.Cut(pair, "=")
		u, err := url.Parse(text)
		if !ok || err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || !slices.Contains(render.Providers(), provider) {
			v.note(wrong(v.c, "provider-base-url", pair, "is not PROVIDER=URL, with one of the providers "+strings.Join(render.Providers(), ", ")))
			continue
		}
		urls[provider] = text
	}
	return urls
}
