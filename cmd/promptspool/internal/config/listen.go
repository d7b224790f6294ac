package config

import (
	"net"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
)

// ListenFlags are the listeners that every role has, and who may call them.
func ListenFlags(api, ops string) []cli.Flag {
	return Group("Listeners", append([]cli.Flag{
		TextFlag("listen", api, "the `address` of the API: host:port or unix:/path"),
		TextFlag("ops-listen", ops, "the `address` of metrics and probes: host:port"),
		ListenPublicFlag(),
		ListFlag("allow-uid", "a `user`'s number that may call over a unix socket, besides our own; may be "+
			"repeated (default: those whom the file's mode 0660 lets in)"),
	}, tlsFlags()...)...)
}

// ListenPublicFlag lets the listeners be more than this machine's own.
func ListenPublicFlag() cli.Flag {
	return SwitchFlag("listen-public", "accept connections from other machines")
}

// AddressOr is Address for a listener that there need not be. Without one, At is empty.
func (r *Reader) AddressOr(name string) Address {
	if r.Text(name) == "" {
		return Address{}
	}
	return r.Address(name)
}

// Address is where a listener listens, and whose calls it takes.
type Address struct {
	Flag string   // with which it was set: --listen or, of a server in up, --server-listen
	At   string   // host:port or unix:/path
	UIDs []uint32 // of a unix socket: who may call, besides our own user; none for all whom the file lets in
}

// Address reads a listener's address.
//
// Without --listen-public it must be on loopback or a unix socket: no password protects the
// operations, and the API's keys would travel in the clear.
func (r *Reader) Address(name string) Address {
	a := Address{Flag: "--" + name, At: r.Text(name)}
	for _, user := range r.List("allow-uid") {
		uid, err := strconv.ParseUint(user, 10, 32)
		if err != nil {
			r.RejectValue("allow-uid", user, "is not the number of a user, such as 65532")
		}
		a.UIDs = append(a.UIDs, uint32(uid))
	}

	if path, isUnix := strings.CutPrefix(a.At, "unix:"); isUnix {
		// Probes, scrapers and the sidecar of up speak to a port.
		takesUnix := name == "listen" || name == "otlp-listen"
		if !takesUnix || path == "" {
			r.Reject(name, "is not an address such as 127.0.0.1:8787")
		}
		return a
	}

	host, _, err := net.SplitHostPort(a.At)
	switch {
	case err != nil:
		r.Reject(name, "is not an address such as 127.0.0.1:8787")
	case !r.Given("listen-public") && !IsLoopback(host):
		r.Reject(name, "is reached from other machines; take 127.0.0.1, or allow it with --listen-public")
	}
	return a
}

// IsLoopback reports whether only this machine reaches a host.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
