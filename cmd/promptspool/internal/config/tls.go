package config

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/urfave/cli/v2"
)

// tlsFlags are a listener's certificate, and which clients it accepts.
func tlsFlags() []cli.Flag {
	return []cli.Flag{
		TextFlag("tls-cert-file", "",
			"serve the API over TLS with the certificate in this `file` (PEM), read again when it changes"),
		TextFlag("tls-key-file", "", "the certificate's key, a `file` (PEM)"),
		TextFlag("tls-client-ca-file", "",
			"take only clients with a certificate of the authorities in this `file` (PEM)"),
	}
}

// UpstreamFlags are the server that a sidecar forwards to, and how it is trusted.
func UpstreamFlags() []cli.Flag {
	own := []cli.Flag{
		TextFlag("upstream", "", "the `URL` of the server, such as http://127.0.0.1:8788"),
		SwitchFlag("upstream-plaintext",
			"let --upstream be http:// beyond loopback: keys and records travel in clear"),
	}
	return Group("Upstream", append(own, TrustFlags("upstream")...)...)
}

// TrustFlags are the certificates with which we and the server that a flag names trust each other.
func TrustFlags(name string) []cli.Flag {
	return []cli.Flag{
		TextFlag(name+"-ca-file", "",
			"trust only the authorities in this `file` (PEM) for the other server's certificate, not the system's"),
		TextFlag(name+"-cert-file", "", "show the other server the certificate in this `file` (PEM)"),
		TextFlag(name+"-key-file", "", "that certificate's key, a `file` (PEM)"),
	}
}

// Trust reads TrustFlags for a command that ends by itself, with the files as they are now.
func (r *Reader) Trust(name string) *tls.Config {
	return NewLiveTLS(r.Certificates(name+"-cert-file", name+"-key-file", name+"-ca-file")).Client()
}

// Certificates are what was loaded from files at one time. They do not change: a reload replaces them.
type Certificates struct {
	Cert  *tls.Certificate // nil: none
	roots *x509.CertPool   // nil: none, or the system's
}

// Certificates loads the files that three settings name, each of which may be absent.
func (r *Reader) Certificates(certName, keyName, rootsName string) *Certificates {
	certFile, keyFile, rootsFile := r.Text(certName), r.Text(keyName), r.Text(rootsName)
	state := new(Certificates)

	switch {
	case (certFile == "") != (keyFile == ""):
		r.Note(fmt.Errorf("%s and %s go together; one of them is missing",
			SettingName(r.c, certName), SettingName(r.c, keyName)))
	case certFile != "":
		cert, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			r.Note(fmt.Errorf("%s: %w", SettingName(r.c, certName), err))
		}
		state.Cert = &cert
	}

	if rootsFile != "" {
		pem, err := os.ReadFile(rootsFile)
		state.roots = x509.NewCertPool()
		if err == nil && !state.roots.AppendCertsFromPEM(pem) {
			err = fmt.Errorf("%s holds no certificate (PEM)", rootsFile)
		}
		if err != nil {
			r.Note(fmt.Errorf("%s: %w", SettingName(r.c, rootsName), err))
		}
	}
	return state
}

// ListenTLS loads the certificates of the API's listener.
func (r *Reader) ListenTLS() *Certificates {
	state := r.Certificates("tls-cert-file", "tls-key-file", "tls-client-ca-file")
	if state.Cert == nil && state.roots != nil {
		r.Note(fmt.Errorf("%s needs --tls-cert-file and --tls-key-file", SettingName(r.c, "tls-client-ca-file")))
	}
	return state
}

// UpstreamURL returns --upstream, and rejects an address that would send keys through a network in the clear.
//
// --upstream-plaintext allows it. Other faults are reported where the URL is used.
func (r *Reader) UpstreamURL() string {
	address := r.Text("upstream")
	u, err := url.Parse(address)
	if err == nil && u.Scheme == "http" && !IsLoopback(u.Hostname()) && !r.Given("upstream-plaintext") {
		r.Reject("upstream",
			"would send keys and records in clear; take https://, or allow it with --upstream-plaintext")
	}
	return address
}

// LiveTLS holds certificates that may change while connections are made.
type LiveTLS struct{ atomic.Pointer[Certificates] }

// NewLiveTLS returns a LiveTLS that begins with c; nil means no certificates.
func NewLiveTLS(c *Certificates) *LiveTLS {
	live := new(LiveTLS)
	live.Store(cmp.Or(c, new(Certificates)))
	return live
}

// Serve returns a listener that speaks TLS if there is a certificate, otherwise ln itself.
//
// That choice is fixed when the process starts; each connection uses the certificate of its moment.
func (l *LiveTLS) Serve(ln net.Listener) net.Listener {
	if !l.serves() {
		return ln
	}
	return tls.NewListener(ln, &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: l.serverConfig,
	})
}

// serverConfig returns the configuration of one connection from a client.
func (l *LiveTLS) serverConfig(*tls.ClientHelloInfo) (*tls.Config, error) {
	now := l.Load()
	if now.Cert == nil {
		// Never in the clear instead: the keys of callers would travel so.
		return nil, errors.New("the certificate was taken away; start again without --tls-cert-file")
	}

	c := &tls.Config{
		MinVersion: tls.VersionTLS12,
		// h2 is for clients of gRPC, which speak nothing else. All others get HTTP/1.1.
		NextProtos:   []string{"http/1.1", "h2"},
		Certificates: []tls.Certificate{*now.Cert},
	}
	if now.roots != nil {
		c.ClientAuth = tls.RequireAndVerifyClientCert
		c.ClientCAs = now.roots
	}
	return c, nil
}

// serves reports whether there is a certificate to serve with.
func (l *LiveTLS) serves() bool { return l != nil && l.Load() != nil && l.Load().Cert != nil }

// Url returns the URL of a listener; "" for a unix socket.
func (l *LiveTLS) Url(at net.Addr) string {
	switch {
	case at.Network() == "unix":
		return ""
	case l.serves():
		return "https://" + at.String()
	}
	return "http://" + at.String()
}

// Client returns the configuration of requests to a server.
func (l *LiveTLS) Client() *tls.Config {
	c := &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if cert := l.Load().Cert; cert != nil {
				return cert, nil
			}
			// None is shown.
			return new(tls.Certificate), nil
		},
	}
	if l.Load().roots == nil {
		return c
	}

	// The library reads RootCAs only once. So that rotated authorities count, each connection
	// is verified here, as the library would do it, against those of this moment.
	c.InsecureSkipVerify = true
	c.VerifyConnection = func(s tls.ConnectionState) error {
		options := x509.VerifyOptions{
			Roots:         l.Load().roots,
			DNSName:       s.ServerName,
			Intermediates: x509.NewCertPool(),
		}
		for _, cert := range s.PeerCertificates[1:] {
			options.Intermediates.AddCert(cert)
		}
		_, err := s.PeerCertificates[0].Verify(options)
		return err
	}
	return c
}

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
