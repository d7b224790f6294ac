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
