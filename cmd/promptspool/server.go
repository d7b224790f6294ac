package main

import (
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"promptspool/api/auth"
	"promptspool/api/auth/oidc"
	"promptspool/api/dashboard/frame"
	"promptspool/api/edge"
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
		"the `key` that seals the URLs and secrets of targets, at least 32 characters; with PostgreSQL, the same for "+
			"all servers (default without PostgreSQL: a file in the data folder)"),
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

// signInFlags say how people sign in: by a password, or at an OpenID Connect issuer.
func signInFlags() []cli.Flag {
	flags := []cli.Flag{
		config.ChoiceFlag("sign-in", string(wire.SignInByBoth),
			"`how` people sign in, without --oidc-issuer always by password",
			string(wire.SignInByBoth), string(wire.SignInByIssuer), string(wire.SignInByPassword)),
		config.TextFlag("emergency-owner", "",
			"the `email` of an owner who may use a password although --sign-in is oidc, when the issuer is away"),
		config.TextFlag("oidc-issuer", "",
			"the `URL` of the OpenID Connect issuer where people sign in, as its discovery document spells it"),
		config.TextFlag("oidc-client-id", "", "the `name` under which the issuer knows this server"),
		config.ListFlag("oidc-role",
			"a role for the members of one of the issuer's groups, as `GROUP=ROLE@PROJECT`; may be repeated"),
		config.TextFlag("oidc-groups-claim", "groups", "the `claim` in which the issuer sends a person's groups"),
		config.ListFlag("oidc-scope", "a `scope` to ask for besides openid and email; may be repeated"),
		config.TextFlag("oidc-session", "1h",
			"the `duration` after which a session passes through the issuer again, without a click"),
		config.SwitchFlag("oidc-trust-email",
			"accept email addresses of which the issuer does not say that they were verified, "+
				"because only its administrators assign them"),
	}
	flags = append(flags, config.SecretFlags("oidc-client-secret",
		"the `secret` with which this server identifies itself to the issuer (default: only PKCE)")...)

	return config.Group("Sign-in", append(flags, config.TrustFlags("oidc")...)...)
}

// signIn is what signInFlags say.
type signIn struct {
	people auth.PeopleConfig
	issuer oidc.Config // without an Issuer, people use passwords
}

// at returns the issuer for the pages: nil if people do not sign in there.
func (s signIn) at(issuer *oidc.Issuer) frame.Issuer {
	if s.issuer.Issuer == "" || s.people.SignInBy == wire.SignInByPassword {
		return nil
	}
	return issuer
}

// signInOf reads signInFlags.
func signInOf(r *config.Reader) signIn {
	s := signIn{
		people: auth.PeopleConfig{
			SignUp:         signUpOf(r),
			SignInBy:       wire.SignInBy(r.OneOf("sign-in")),
			EmergencyOwner: r.Text("emergency-owner"),
			IssuerSession:  r.Duration("oidc-session"),
		},
		issuer: oidc.Config{
			Issuer:       r.Text("oidc-issuer"),
			ClientSecret: r.Secret("oidc-client-secret"),
			Scopes:       r.List("oidc-scope"),
			GroupsClaim:  r.Text("oidc-groups-claim"),
			Roles:        groupRolesOf(r),
			TrustEmail:   r.Given("oidc-trust-email"),
			TLS:          r.Trust("oidc"),
			Now:          time.Now,
		},
	}

	for _, grants := range s.issuer.Roles {
		for _, g := range grants {
			s.people.GroupProjects = append(s.people.GroupProjects, g.Project)
		}
	}

	u, err := url.Parse(s.issuer.Issuer)
	switch {
	case s.issuer.Issuer == "" && s.people.SignInBy == wire.SignInByIssuer:
		r.Required("oidc-issuer")
	case s.issuer.Issuer == "":
	case err != nil || u.Host == "" || u.Scheme != "https" && !(u.Scheme == "http" && config.IsLoopback(u.Hostname())):
		r.Reject("oidc-issuer", "is not a URL such as https://id.example.com/realms/staff")
	default:
		s.issuer.ClientID = r.Required("oidc-client-id")
	}

	return s
}

// groupRolesOf reads --oidc-role.
func groupRolesOf(r *config.Reader) map[string][]wire.Grant {
	roles := map[string][]wire.Grant{}
	for _, text := range r.List("oidc-role") {
		// The name of a group may contain the sign as well: "cn=admins,dc=example".
		at := max(strings.LastIndexByte(text, '='), 0)
		role, project, _ := strings.Cut(text[at:], "@")
		grant := wire.Grant{Project: project, Role: wire.Role(strings.TrimPrefix(role, "="))}
		if at == 0 || !grant.Role.Known() || !auth.IsProject(project) {
			r.RejectValue("oidc-role", text,
				"is not GROUP=ROLE@PROJECT, with a role and a project's name, such as staff=viewer@default")
			continue
		}
		roles[text[:at]] = append(roles[text[:at]], grant)
	}
	return roles
}

// publicFlags say at which address people and apps reach a server, and through what.
func publicFlags() []cli.Flag {
	return config.Group("Public address",
		config.TextFlag("public-url", "",
			"the `URL` at which people and apps reach this server, such as https://prompts.example.com, "+
				"or https://example.com/promptspool below a path (default: wherever they call it)"),
		config.ListFlag("trusted-proxy",
			"a reverse `proxy` in front of this server, as 10.0.0.0/8, 10.1.2.3 or unix, that is believed about "+
				"the client (X-Forwarded-For and X-Forwarded-Proto); may be repeated"),
		config.SwitchFlag("cookies-insecure",
			"let people sign in over plain HTTP, in a private network: others on it can read their passwords"),
	)
}

// publicAddress is what publicFlags say.
type publicAddress struct {
	url             *url.URL // without a slash at its end; nil for none
	proxies         edge.Proxies
	cookiesInsecure bool
}

// publicAddressOf reads publicFlags.
func publicAddressOf(r *config.Reader) publicAddress {
	p := publicAddress{url: publicURLOf(r), cookiesInsecure: r.Given("cookies-insecure")}
	for _, text := range r.Hosts("trusted-proxy") {
		if err := p.proxies.Add(text); err != nil {
			r.RejectValue("trusted-proxy", text, err.Error())
		}
	}

	switch {
	case p.url == nil:
	case p.cookiesInsecure && p.url.Scheme == "https":
		r.Reject("public-url", "is https://, where --cookies-insecure would only do harm; leave one of them out")
	case !p.cookiesInsecure && p.url.Scheme == "http" && !config.IsLoopback(p.url.Hostname()):
		r.Reject("public-url", "makes signing in impossible, because browsers keep a session over HTTPS only; "+
			"take https://, or allow it with --cookies-insecure")
	}

	return p
}

// plainPath is a path that looks the same in every encoding.
var plainPath = regexp.MustCompile(`^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$`)

// publicURLOf reads --public-url.
func publicURLOf(r *config.Reader) *url.URL {
	text := strings.TrimRight(r.Text("public-url"), "/")
	if text == "" {
		return nil
	}

	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" ||
		u.User != nil || strings.ContainsAny(text, "?#") {
		r.Reject("public-url", "is not a URL such as https://prompts.example.com or https://example.com/promptspool")
		return nil
	}

	// Browsers write an origin in small letters, and without the usual port.
	u.Host = strings.ToLower(u.Host)
	if port := u.Port(); u.Scheme == "https" && port == "443" || u.Scheme == "http" && port == "80" {
		u.Host = strings.TrimSuffix(u.Host, ":"+port)
	}

	if !plainPath.MatchString(u.EscapedPath()) {
		r.Reject("public-url", "has a path with more than letters, digits and . _ ~ -")
	}

	return u
}

// basePath returns the path below which the server is reached, or "".
func (p publicAddress) basePath() string {
	if p.url == nil {
		return ""
	}

	return p.url.Path
}

// or returns the public address, or another one if there is none.
func (p publicAddress) or(address string) string {
	if p.url == nil {
		return address
	}

	return p.url.String()
}
