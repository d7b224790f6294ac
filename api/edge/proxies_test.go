package edge

import (
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestOnlyTrustedProxiesAreBelieved(t *testing.T) {
	tcp := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 4711} }
	for name, c := range map[string]struct {
		trusted string
		peer    net.Addr
		headers []string // X-Forwarded-For
		want    string   // r.RemoteAddr
		proto   string   // "" if the header must be gone
	}{
		"nobody is trusted": {
			peer: tcp("127.0.0.1"), headers: []string{"192.0.2.1"}, want: "127.0.0.1:4711",
		},
		"another peer forges": {
			trusted: "10.0.0.0/8", peer: tcp("192.0.2.66"), headers: []string{"10.0.0.1"}, want: "192.0.2.66:4711",
		},
		"one proxy": {
			trusted: "10.0.0.0/8", peer: tcp("10.0.0.1"), headers: []string{"192.0.2.1"},
			want: "192.0.2.1", proto: "https",
		},
		"the client forges its own entry": {
			trusted: "10.0.0.1", peer: tcp("10.0.0.1"), headers: []string{"198.51.100.9, 192.0.2.1"},
			want: "192.0.2.1", proto: "https",
		},
		"the client forges a trusted hop": {
			trusted: "10.0.0.0/8", peer: tcp("10.0.0.1"), headers: []string{"198.51.100.9, 10.0.0.7", "192.0.2.1"},
			want: "192.0.2.1", proto: "https",
		},
		"two proxies": {
			trusted: "10.0.0.0/8 2001:db8::/32", peer: tcp("2001:db8::1"),
			headers: []string{"198.51.100.9, 192.0.2.1", "10.0.0.2"}, want: "192.0.2.1", proto: "https",
		},
		"entries with ports and brackets": {
			trusted: "10.0.0.1 10.0.0.2", peer: tcp("10.0.0.1"), headers: []string{"[2001:db8::5]:80, 10.0.0.2:1234"},
			want: "2001:db8::5", proto: "https",
		},
		"what is no address ends the list": {
			trusted: "10.0.0.0/8", peer: tcp("10.0.0.1"), headers: []string{"192.0.2.1, unknown, 10.0.0.2"},
			want: "10.0.0.2", proto: "https",
		},
		"a proxy that says nothing": {
			trusted: "10.0.0.0/8", peer: tcp("10.0.0.1"), want: "10.0.0.1", proto: "https",
		},
		"an IPv4 address in IPv6": {
			trusted: "10.0.0.0/8", peer: tcp("::ffff:10.0.0.1"), headers: []string{"::ffff:192.0.2.1"},
			want: "192.0.2.1", proto: "https",
		},
		"a unix socket": {
			trusted: "unix", peer: &net.UnixAddr{Net: "unix"}, headers: []string{"192.0.2.1"},
			want: "192.0.2.1", proto: "https",
		},
		"a unix socket that is not trusted": {
			trusted: "10.0.0.0/8", peer: &net.UnixAddr{Net: "unix"}, headers: []string{"192.0.2.1"}, want: "",
		},
	} {
		var p Proxies
		for text := range strings.FieldsSeq(c.trusted) {
			if err := p.Add(text); err != nil {
				t.Fatal(err)
			}
		}
		r := &http.Request{Header: http.Header{
			"X-Forwarded-For": c.headers, "X-Forwarded-Proto": {"HTTPS, http"}, "X-Forwarded-Host": {"evil.example"},
		}}
		p.Apply(r, c.peer)

		if r.RemoteAddr != c.want || r.Header.Get("X-Forwarded-Proto") != c.proto {
			t.Errorf("%s: %q by %q, want %q by %q", name,
				r.RemoteAddr, r.Header.Get("X-Forwarded-Proto"), c.want, c.proto)
		}
		if _, left := r.Header["X-Forwarded-Host"]; left != (c.proto != "") {
			t.Errorf("%s: X-Forwarded-Host is left: %v", name, left)
		}
	}
}

func TestWhatNamesNoProxyIsRejected(t *testing.T) {
	for _, text := range []string{"", "proxy", "10.0.0.0/33", "10.0.0.1:80", "fe80::1%eth0", "unix:/run/nginx.sock"} {
		var p Proxies
		if p.Add(text) == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
