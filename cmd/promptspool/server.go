package main

import (
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/metrics"
	"promptspool/registry/prices"
	"promptspool/registry/render"
	"promptspool/spool/archive"
)

// bootstrapFlags have the first key of a server.
func bootstrapFlags() []cli.Flag {
	return config.SecretFlags("bootstrap-key",
		"create the project 'default' with exactly this `key`, of scope full; at least 32 characters")
}

// retentionFlags say what a server keeps.
func retentionFlags() []cli.Flag {
	return config.Group("Retention",
		config.TextFlag("retention-age", "",
			"the `duration` for which records are kept, such as 90d; older ones are deleted (default: forever)"),
		config.TextFlag("retention-bytes", "",
			"the `size` of bodies, as they were sent, that is kept of each project; "+
				"beyond it the oldest records are deleted (default: no bound)"),
	)
}

// retentionOf reads retentionFlags.
func retentionOf(r *config.Reader) archive.Retention {
	retention := archive.Retention{Bytes: r.SizeOr("retention-bytes", 0)}
	if r.Text("retention-age") != "" {
		// No default of 0s: an age of nothing would delete everything.
		retention.Age = r.Duration("retention-age")
	}
	return retention
}

// usageFlags say what a server counts of calls in its metrics.
func usageFlags() []cli.Flag {
	return config.Group("Usage",
		config.SwitchFlag("usage-metrics", "count calls, tokens, cost and time among the metrics, "+
			"by project, model, provider, status and version of a template"),
		config.ListFlag("usage-metadata", "count them by the value of this metadata `key`, too; may be repeated"),
		config.TextFlag("usage-series-max", strconv.Itoa(metrics.UsageSeriesDefault),
			"the `number` of series beyond which values are counted as "+metrics.UsedOther),
	)
}

// usageMetricsOf reads usageFlags; nil if nothing is counted.
func usageMetricsOf(r *config.Reader) *metrics.Usage {
	keys, most := r.List("usage-metadata"), r.Count("usage-series-max", 1_000_000)
	if !r.Given("usage-metrics") {
		if len(keys) > 0 {
			r.RejectValue("usage-metadata", keys[0], "counts nothing without --usage-metrics")
		}
		return nil
	}
	usage, err := metrics.NewUsage(keys, most)
	if err != nil {
		r.RejectValue("usage-metadata", strings.Join(keys, ", "), err.Error())
	}
	return usage
}

// serverCommand runs the role server.
func serverCommand() *cli.Command {
	flags := []cli.Flag{
		config.FileFlag(),
		config.TextFlag("data", "", "data `folder` (created if missing)"),
		signUpFlag(),
		pricesFlag(),
		providerURLFlag(),
	}
	flags = append(flags, targetFlags()...)
	free := config.TextFlag("free-min", "", "the `size` that stays free on the archive's disk; "+
		"below it writes get 503 (default: 256MiB, or a sixteenth of a disk below 4GiB)")

	c := config.Command("server", "keep records, templates and keys", runServer,
		flags, config.ArchiveFlags(), bootstrapFlags(),
		config.ListenFlags(config.ServerListen, config.ServerOpsListen), publicFlags(), signInFlags(),
		limitFlags(), roleFlags(), retentionFlags(), usageFlags(), []cli.Flag{free}, config.LogFlags("info"))
	c.Before = config.Apply
	return c
}

func runServer(c *cli.Context) error {
	role, err := serverRoleOf(c)
	if err != nil {
		return err
	}

	// The settings that a reload reads again, and `config print` shows.
	role.source = config.SourceOf(newApp, c)
	scheme := "http"
	if role.tls.Cert != nil {
		scheme = "https"
	}
	// Known only then: the port may have been given by the system.
	role.ready = func(at addresses, setup wire.Secret) {
		welcome(c.App.Writer, role.public.or(scheme+"://"+at.api), setup)
	}

	return server(c.Context, role)
}

// signUpFlag says who may sign up at the dashboard.
func signUpFlag() cli.Flag {
	return config.ChoiceFlag("signup", string(wire.SignUpInvite),
		"`who` may sign up at the dashboard (invite: those whom an owner invites; "+
			"open: everybody, each into a new project)",
		string(wire.SignUpInvite), string(wire.SignUpOpen), string(wire.SignUpClosed))
}

// signUpOf reads signUpFlag.
func signUpOf(r *config.Reader) wire.SignUp {
	return wire.SignUp(r.OneOf("signup"))
}

// welcome explains, at the first start of a server, how to sign up.
//
// It is printed, not logged: logs are kept, and others read them.
func welcome(w io.Writer, url string, setup wire.Secret) {
	if setup != "" {
		_, _ = fmt.Fprintf(w, "Nobody has signed up yet. Open %s to become the owner.\n",
			linkTo(url, "/sign-up", string(setup)))
	}
}

// serverRoleOf reads the settings of `server`, and reports every error in them.
func serverRoleOf(c *cli.Context) (serverConfig, error) {
	r := config.Read(c)
	role := serverConfig{roleConfig: roleConfigOf(r)}
	role.signIn = signInOf(r)
	role.prices = pricesOf(r)
	role.providerURLs = providerURLsOf(r)
	role.data = r.Required("data")
	role.archive = r.ArchiveURL()
	role.public = publicAddressOf(r)
	role.bootstrapKey = r.Secret("bootstrap-key")
	role.limits = limitsOf(r)
	role.tls = r.ListenTLS()
	if role.public.cookiesInsecure && role.tls.Cert != nil {
		r.Reject("cookies-insecure",
			"would only do harm with --tls-cert-file, where everybody comes over HTTPS; leave one of them out")
	}
	role.retention = retentionOf(r)
	role.usage = usageMetricsOf(r)
	role.freeMin = r.SizeOr("free-min", 0)
	role.sealKey, role.webhookAllow = targetsOf(r)

	return role, r.Err()
}

// providerURLFlag has the addresses through which the apps reach providers.
func providerURLFlag() cli.Flag {
	return config.ListFlag("provider-base-url",
		"what a template's `PROVIDER=URL` tells the apps as provider_base_url; may be repeated")
}

// providerURLsOf reads --provider-base-url.
func providerURLsOf(r *config.Reader) wire.ProviderBaseURLs {
	urls := wire.ProviderBaseURLs{}
	for _, pair := range r.List("provider-base-url") {
		provider, text, ok := strings.Cut(pair, "=")
		// Checked here, because each app would fail only when it calls.
		u, err := url.Parse(text)
		isURL := err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
		if !ok || !isURL || !slices.Contains(render.Providers(), provider) {
			r.RejectValue("provider-base-url", pair,
				"is not PROVIDER=URL, with one of the providers "+strings.Join(render.Providers(), ", "))
			continue
		}
		urls[provider] = text
	}
	return urls
}

// pricesFlag names a file of model prices.
func pricesFlag() cli.Flag {
	return config.TextFlag("prices", "",
		"a `file` of model prices that goes before those that come with the program, "+
			"in the form of model_prices_and_context_window.json")
}

// pricesOf reads pricesFlag. A file that is wrong is refused when the server starts.
func pricesOf(r *config.Reader) *prices.Table {
	path := r.Text("prices")
	if path == "" {
		return prices.BuiltIn()
	}

	file, err := os.ReadFile(path)
	if err != nil {
		r.Note(fmt.Errorf("--prices: %w", err))
		return nil
	}
	table, err := prices.Over(prices.BuiltIn(), file)
	if err != nil {
		r.Note(fmt.Errorf("--prices: %s, %w", path, err))
	}
	return table
}

// targetFlags are about the targets of notices.
func targetFlags() []cli.Flag {
	return append(config.SecretFlags("seal-key",
		"the `key` that seals the URLs and secrets of targets, at least 32 characters, the same for all servers of a "+
			"database (default: a file in the data folder)"),
		config.ListFlag("webhook-allow",
			"a private `network`, such as 10.1.0.0/16, whose addresses targets may have; may be repeated"))
}

// targetsOf reads targetFlags.
func targetsOf(r *config.Reader) (key wire.Secret, allow []netip.Prefix) {
	key = r.Secret("seal-key")
	if key != "" && len(key) < 32 {
		r.Reject("seal-key", "must have at least 32 characters, for example from `openssl rand -hex 32`")
	}
	for _, text := range r.List("webhook-allow") {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			r.RejectValue("webhook-allow", text, "must be a network such as 10.1.0.0/16")
		}
		allow = append(allow, network)
	}
	return key, allow
}

// serverConfig is what a server is started with.
type serverConfig struct {
	roleConfig
	archive      wire.Secret // a postgres:// URL; "" means Badger in data
	public       publicAddress
	bootstrapKey wire.Secret // "" for none
	prices       *prices.Table
	providerURLs wire.ProviderBaseURLs
	retention    archive.Retention
	usage        *metrics.Usage // of calls; nil does not count it
	freeMin      int64          // of the disk that stays free under Badger; 0 for its default
	signIn       signIn
	sealKey      wire.Secret      // "" for the one in data
	webhookAllow []netip.Prefix   // private networks that targets may be in
	now          func() time.Time // the clock by which keys end; nil for time.Now
	sidecarURL   string           // of `up`; "" for none
	printedKey   wire.Secret      // the bootstrap key, if the terminal shows it

	// ready is called once, when requests are taken, with the code with which the first
	// person signs up: "" if a person has signed up.
	ready func(at addresses, setup wire.Secret)
}
