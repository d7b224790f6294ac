package webhook

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"promptspool/api/wire"
)

// names answers the look-ups of a resolver: each A record in turn.
func names(t *testing.T, addresses ...string) *net.Resolver {
	var asked atomic.Int64
	answer := func(query []byte) []byte {
		var m dnsmessage.Message
		if err := m.Unpack(query); err != nil {
			t.Error(err)
		}
		m.Response = true
		m.Additionals = nil
		if m.Questions[0].Type == dnsmessage.TypeA {
			address := netip.MustParseAddr(addresses[min(int(asked.Add(1)), len(addresses))-1])
			m.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Class: dnsmessage.ClassINET},
				Body:   &dnsmessage.AResource{A: address.As4()},
			}}
		}
		text, err := m.Pack()
		if err != nil {
			t.Error(err)
		}
		return text
	}
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	go func() {
		query := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(query)
			if err != nil {
				return
			}
			_, _ = server.WriteTo(answer(query[:n]), from)
		}
	}()

	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// sendTest sends a test to a URL.
func sendTest(t *testing.T, w *world, s *Service, url string) error {
	t.Helper()
	settings := wire.TargetSettings{Name: "hook", Kind: wire.TargetSlack, URL: url}
	if _, err := s.PutTarget(t.Context(), project, settings); err != nil {
		t.Fatal(err)
	}
	return s.TestTarget(t.Context(), project, "hook")
}

// A target of a project must not reach what only its server can.
func TestPrivateAddressesAreNotCalled(t *testing.T) {
	var called atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called.Add(1) }))
	defer inside.Close()
	_, port, _ := net.SplitHostPort(inside.Listener.Addr().String())
	// A proxy of the environment is not asked either.
	t.Setenv("HTTP_PROXY", inside.URL)

	w := newWorld(t)
	s := w.service()
	s.client.Transport = New(s.c).client.Transport
	for _, host := range []string{
		"127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0.0.0.0", "0",
		"10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "169.254.169.254", "192.0.0.8", "198.18.0.1",
		"224.0.0.1", "240.0.0.1", "255.255.255.255",
		"[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]",
		"[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2001:0:7f00:1::]", "[fe80::1%25lo]", "[fc00::1]", "[fd00:ec2::254]",
		"[fec0::1]", "[ff02::1]", "[2001:db8::1]", "[100::1]",
	} {
		err := sendTest(t, w, s, "http://"+host+":"+port+"/")
		if err == nil || called.Load() > 0 {
			t.Fatalf("%s was called: %v", host, err)
		}
		isRefused := strings.Contains(err.Error(), "prohibited IP address") &&
			strings.Contains(err.Error(), "--webhook-allow")
		// Forms that are no addresses are names to us, which do not exist.
		if !isRefused && !strings.Contains(err.Error(), "lookup") {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// The address that a name has when it is dialled counts, whatever it had before.
func TestANameThatTurnsPrivateIsNotCalled(t *testing.T) {
	var called atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called.Add(1) }))
	defer inside.Close()
	_, port, _ := net.SplitHostPort(inside.Listener.Addr().String())

	w := newWorld(t)
	s := w.service()
	dialer := newDialer([]netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")})
	dialer.Resolver = names(t, "127.0.0.2", "127.0.0.1")
	s.client.Transport = newTransport(dialer)
	// The first address is allowed, and nothing listens there.
	for range 3 {
		if err := sendTest(t, w, s, "http://rebind.example:"+port+"/"); err == nil || called.Load() > 0 {
			t.Errorf("it was called: %v", err)
		}
	}
}

func TestAllowedNetworksAreCalledAndRedirectsAreNot(t *testing.T) {
	var called atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		called.Add(1)
		if r.URL.Path == "/redirect" {
			http.Redirect(w, r, "/", http.StatusTemporaryRedirect)
		}
	}))
	defer inside.Close()

	w := newWorld(t)
	s := w.service()
	s.client.Transport = newTransport(newDialer([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}))
	if err := sendTest(t, w, s, inside.URL); err != nil || called.Load() != 1 {
		t.Errorf("%v after %d calls", err, called.Load())
	}
	if err := sendTest(t, w, s, inside.URL+"/redirect"); err == nil || called.Load() != 2 {
		t.Errorf("a redirect: %v after %d calls", err, called.Load())
	}
}
