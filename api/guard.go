package api

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"promptspool/api/wire"
)

// guard rejects what a web page in a browser could send to this listener. These are requests that
// the browser marks as coming from another site, and Host names of a page's own that resolve to
// us (DNS rebinding). Programs send neither.
func guard(ctx *fasthttp.RequestCtx, hosts []string) error {
	h := &ctx.Request.Header

	host := hostOnly(string(h.Host()))
	if host != "" && !isLoopback(host) && !slices.Contains(hosts, host) {
		return wire.Errorf(wire.CodeForbidden,
			"The Host name %.100q is not allowed here. Call this sidecar as localhost, "+
				"or allow the name with --allow-host.", host)
	}

	if site := string(h.PeekCanonical(siteHeader)); site != "" && site != "same-origin" && site != "none" {
		return wire.Errorf(wire.CodeForbidden, "Cross-site requests from a browser are refused.")
	}

	// Old browsers send no Sec-Fetch-Site, but an Origin with what can change something.
	if origin := string(h.PeekCanonical(originHeader)); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || !strings.EqualFold(u.Host, string(h.Host())) {
			return wire.Errorf(wire.CodeForbidden, "Cross-site requests from a browser are refused.")
		}
	}

	return nil
}

// hostOnly returns an address in lower case, without its port and brackets.
func hostOnly(hostport string) string {
	return strings.ToLower(strings.TrimSuffix((&url.URL{Host: hostport}).Hostname(), "."))
}

func isLoopback(host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host).IsLoopback()
}
