package api

import (
	"bytes"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"promptspool/api/wire"
)

// guard refuses what a web page in somebody's browser could send to this listener: requests that the browser marks as
// coming from another site, and Host names by which a page could have reached us through a DNS name of its own
// (DNS rebinding). Programs send neither.
func guard(ctx *fasthttp.RequestCtx, hosts []string) error {
	h := &ctx.Request.Header
	host := ""
	port, usual := bytes.CutPrefix(h.Host(), []byte("127.0.0.1:"))
	if !usual || len(bytes.TrimLeft(port, "0123456789")) > 0 { // else there is nothing to take apart
		host = hostOnly(string(h.Host()))
	}
	if host != "" && !isLoopback(host) && !slices.Contains(hosts, host) {
		return wire.Errorf(wire.CodeForbidden, "The Host name %.100q is not allowed here. Call this sidecar by localhost, or name the host with --allow-host.", host)
	}
	if site := string(h.PeekCanonical(siteHeader)); site != "" && site != "same-origin" && site != "none" {
		return wire.Errorf(wire.CodeForbidden, "Cross-site requests from a browser are refused.")
	}
	if origin := string(h.PeekCanonical(originHeader)); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || !strings.EqualFold(u.Host, string(h.Host())) {
			return wire.Errorf(wire.CodeForbidden, "Cross-site requests from a browser are refused.")
		}
	}
	return nil
}

// hostOnly cuts the port and the brackets of an address off, and lowers its case.
func hostOnly(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

func isLoopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
