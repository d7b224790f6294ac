package main

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/api"
	"promptspool/api/dashboard"
	"promptspool/api/edge"
	"promptspool/cmd/promptspool/internal/config"
)

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

	first, _, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	switch {
	case !plainPath.MatchString(u.EscapedPath()):
		r.Reject("public-url", "has a path with more than letters, digits and . _ ~ -")
	case isOwn(first):
		// It would be unknown whether a proxy has removed such a path.
		r.Reject("public-url", "begins like a path of the server itself, /"+first+
			"; take another one, such as /promptspool")
	}

	return u
}

// isOwn reports whether a path of the server begins with a segment.
func isOwn(segment string) bool {
	patterns := api.Routes()
	for _, page := range dashboard.Routes() {
		patterns = append(patterns, page.Pattern)
	}
	return segment == "static" || segment != "" && slices.ContainsFunc(patterns, func(pattern string) bool {
		_, path, _ := strings.Cut(pattern, " /")
		first, _, _ := strings.Cut(path, "/")
		return first == segment
	})
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
