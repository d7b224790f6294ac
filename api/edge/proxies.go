package edge

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the reverse proxies in front of a listener that are believed when they say
// for whom they call. The zero value believes no one.
type Proxies struct {
	networks []netip.Prefix
	sockets  bool // every caller over a unix socket, too
}

// Any reports whether anyone is believed.
func (p *Proxies) Any() bool { return p.sockets || len(p.networks) > 0 }

// UnixProxies is the text that makes ParseProxies trust callers over a unix socket.
const UnixProxies = "unix"

// ErrNotProxy is the error for a text that names no proxies.
var ErrNotProxy = errors.New("is not a network such as 10.0.0.0/8, an address such as 10.1.2.3, or unix")

// Add trusts the proxies that text names: a network, an address, or UnixProxies.
func (p *Proxies) Add(text string) error {
	if text == UnixProxies {
		p.sockets = true
		return nil
	}

	network, err := netip.ParsePrefix(text)
	if addr, addrErr := netip.ParseAddr(text); addrErr == nil && addr.Zone() == "" {
		network, err = netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	if err != nil {
		return ErrNotProxy
	}
	p.networks = append(p.networks, network.Masked())

	return nil
}

// ForwardedFor is the header in which proxies name for whom they call.
const ForwardedFor = "X-Forwarded-For"

// The other headers that proxies describe the original request with. Only the first is used.
const (
	forwardedProto = "X-Forwarded-Proto"
	forwarded      = "X-Forwarded-"
)

// Apply sets r.RemoteAddr to the client's address, given the other end of the connection.
// A client behind trusted proxies is the one that they name. The headers X-Forwarded-* of
// all others are removed, so that no other client can be believed by mistake.
func (p Proxies) Apply(r *http.Request, peer net.Addr) {
	r.RemoteAddr = peer.String()
	addr, isTrusted := p.peer(peer)
	if !isTrusted {
		for name := range r.Header {
			if strings.HasPrefix(name, forwarded) {
				delete(r.Header, name)
			}
		}
		return
	}

	if client := p.client(addr, r.Header.Values(ForwardedFor)); client.IsValid() {
		r.RemoteAddr = client.String()
	}
	// Each proxy may add what it was called with; the first entry is what the client used.
	proto, _, _ := strings.Cut(r.Header.Get(forwardedProto), ",")
	r.Header.Set(forwardedProto, strings.ToLower(strings.TrimSpace(proto)))
}

// Client returns the address of a client, or "". It is the other end of the connection or,
// behind trusted proxies, what they name in these values of X-Forwarded-For.
func (p Proxies) Client(peer net.Addr, forwardedFor []string) string {
	addr, isTrusted := p.peer(peer)
	if isTrusted {
		addr = p.client(addr, forwardedFor)
	}
	if !addr.IsValid() {
		return ""
	}

	return addr.String()
}

// peer returns the address at the other end of a connection, which a unix socket does not have,
// and reports whether that is a trusted proxy.
func (p Proxies) peer(at net.Addr) (addr netip.Addr, isTrusted bool) {
	if tcp, isTCP := at.(*net.TCPAddr); isTCP {
		addr = tcp.AddrPort().Addr().Unmap()
		return addr, p.trusts(addr)
	}

	return netip.Addr{}, p.sockets && at.Network() == "unix"
}

func (p Proxies) trusts(addr netip.Addr) bool {
	return slices.ContainsFunc(p.networks, func(n netip.Prefix) bool { return n.Contains(addr) })
}

// client returns who called the trusted proxies, of which the last one is at addr. Every proxy
// appends its caller, so the list is read from its end, as long as those who wrote it are
// trusted: a client can write anything before that.
func (p Proxies) client(addr netip.Addr, headers []string) netip.Addr {
	hops := strings.Split(strings.Join(headers, ","), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		hop, err := parseHop(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}

		addr = hop
		if !p.trusts(addr) {
			break
		}
	}

	return addr
}

// parseHop parses an entry of X-Forwarded-For. Some proxies add the port.
func parseHop(text string) (netip.Addr, error) {
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return withPort.Addr().Unmap(), nil
	}
	addr, err := netip.ParseAddr(strings.Trim(text, "[]"))

	return addr.Unmap().WithZone(""), err
}
