package main

import (
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

// tlsFlags are a listener's certificate, and whose clients it takes.
func tlsFlags() []cli.Flag {
	return []cli.Flag{
		stringFlag("tls-cert-file", "", "serve the API over TLS with the certificate in this `file` (PEM), read again when it changes"),
		stringFlag("tls-key-file", "", "the certificate's key, a `file` (PEM)"),
		stringFlag("tls-client-ca-file", "", "take only clients with a certificate of the authorities in this `file` (PEM)"),
	}
}

// upstreamFlags are the server that a sidecar forwards to, and how it is known.
func upstreamFlags() []cli.Flag {
	return append([]cli.Flag{
		stringFlag("upstream", "", "the `URL` of the server, such as http://127.0.0.1:8788"),
		switchFlag("upstream-plaintext", "let --upstream be http:// beyond loopback: keys and records travel in clear"),
	}, trustFlags("upstream")...)
}

// trustFlags say how the server that a flag names is known, and as whom it knows us.
func trustFlags(name string) []cli.Flag {
	return []cli.Flag{
		stringFlag(name+"-ca-file", "", "trust only the authorities in this `file` (PEM) for the server's certificate, not the system's"),
		stringFlag(name+"-cert-file", "", "show the server the certificate in this `file` (PEM)"),
		stringFlag(name+"-key-file", "", "that certificate's key, a `file` (PEM)"),
	}
}

// trustOf reads trustFlags for a command that ends by itself: what the files hold now.
func trustOf(c *cli.Context, name string) (*tls.Config, error) {
	v := &values{c: c}
	live := new(liveTLS)
	live.Store(v.tlsState(name+"-cert-file", name+"-key-file", name+"-ca-file"))
	if err := v.err(); err != nil {
		return nil, err
	}
	return live.client(), nil
}

// tlsState is certificates as they are now. One that was loaded does not change; a reload puts another in its place.
type tlsState struct {
	cert  *tls.Certificate // nil: none
	roots *x509.CertPool   // nil: none, or the system's
}

// tlsState loads the files that three settings name, each of which may be absent.
func (v *values) tlsState(certName, keyName, rootsName string) *tlsState {
	certFile, keyFile, rootsFile := v.text(certName), v.text(keyName), v.text(rootsName)
	state := new(tlsState)
	switch {
	case (certFile == "") != (keyFile == ""):
		v.note(fmt.Errorf("%s and %s go together; one of them is missing", where(v.c, certName), where(v.c, keyName)))
	case certFile != "":
		cert, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			v.note(fmt.Errorf("%s: %w", where(v.c, certName), err))
		}
		state.cert = &cert
	}
	if rootsFile != "" {
		pem, err := os.ReadFile(rootsFile)
		state.roots = x509.NewCertPool()
		if err == nil && !state.roots.AppendCertsFromPEM(pem) {
			err = fmt.Errorf("%s holds no certificate (PEM)", rootsFile)
		}
		if err != nil {
			v.note(fmt.Errorf("%s: %w", where(v.c, rootsName), err))
		}
	}
	return state
}

// listenTLS are the certificates of the API's listener.
func (v *values) listenTLS() *tlsState {
	state := v.tlsState("tls-cert-file", "tls-key-file", "tls-client-ca-file")
	if state.cert == nil && state.roots != nil {
		v.note(fmt.Errorf("%s needs --tls-cert-file and --tls-key-file", where(v.c, "tls-client-ca-file")))
	}
	return state
}

// upstreamURL is --upstream, which must not send keys through a network in clear unless --upstream-plaintext says so. What else is
// wrong with it is told where it is used.
func (v *values) upstreamURL() string {
	address := v.text("upstream")
	u, err := url.Parse(address)
	if err == nil && u.Scheme == "http" && !isLoopback(u.Hostname()) && !v.c.Bool("upstream-plaintext") {
		v.wrong("upstream", "would send keys and records in clear; take https://, or allow it with --upstream-plaintext")
	}
	return address
}

// liveTLS is certificates that may change while connections are made.
type liveTLS struct{ atomic.Pointer[tlsState] }

// serve puts TLS before a listener, if there is a certificate. Whether there is one is fixed when the process starts.
func (l *liveTLS) serve(ln net.Listener) net.Listener {
	if !l.serves() {
		return ln
	}
	return tls.NewListener(ln, &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := l.Load()
		if now.cert == nil {
			return nil, errors.New("the certificate was taken away; start again without --tls-cert-file")
		}
		c := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, Certificates: []tls.Certificate{*now.cert}}
		if now.roots != nil {
			c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, now.roots
		}
		return c, nil
	}})
}

// serves reports whether there is a certificate to serve with.
func (l *liveTLS) serves() bool { return l != nil && l.Load() != nil && l.Load().cert != nil }

// url is where a listener takes calls; "" if that is a unix socket.
func (l *liveTLS) url(at net.Addr) string {
	switch {
	case at.Network() == "unix":
		return ""
	case l.serves():
		return "https://" + at.String()
	}
	return "http://" + at.String()
}

// client is for calls to a server.
func (l *liveTLS) client() *tls.Config {
	c := &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if cert := l.Load().cert; cert != nil {
				return cert, nil
			}
			return new(tls.Certificate), nil // none is shown
		},
	}
	if l.Load().roots == nil {
		return c
	}
	// RootCAs is read once for all connections. So that rotated authorities count, each connection is verified below, as the
	// library would do it, against those of this moment.
	c.InsecureSkipVerify = true
	c.VerifyConnection = func(s tls.ConnectionState) error {
		o := x509.VerifyOptions{Roots: l.Load().roots, DNSName: s.ServerName, Intermediates: x509.NewCertPool()}
		for _, cert := range s.PeerCertificates[1:] {
			o.Intermediates.AddCert(cert)
		}
		_, err := s.PeerCertificates[0].Verify(o)
		return err
	}
	return c
}
