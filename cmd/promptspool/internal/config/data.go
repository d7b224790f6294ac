package config

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/urfave/cli/v2"

	"promptspool/api/client"
	"promptspool/api/wire"
	"promptspool/api/words"
	"promptspool/cmd/promptspool/internal/datafolder"
)

// ServerDataFlag names the data folder of a server.
func ServerDataFlag() cli.Flag {
	return TextFlag("data", "", "the server's data `folder`, or that of up"+UpDataHere)
}

// The data folders of `up` and `up --demo`, which other commands find where they are started.
const (
	UpData   = ".promptspool"
	DemoData = ".promptspool-demo"
)

// UpDataHere ends the help of --data in commands that find these folders.
const UpDataHere = " (default: " + UpData + " or " + DemoData + ", if it is here)"

// DataHere returns --data, or the data folder of an `up` that was started here; "" for neither.
func DataHere(c *cli.Context) string {
	data := c.String("data")
	for _, here := range []string{UpData, DemoData} {
		if data == "" && datafolder.IsUp(here) {
			data = here
		}
	}
	return data
}

// RoleData returns the data folder of a role: --data, or the role's folder within that of `up`.
func RoleData(c *cli.Context, role string) (string, error) {
	data := DataHere(c)
	if data == "" {
		r := Read(c)
		r.Required("data")
		return "", r.Err()
	}

	folder, err := datafolder.OfRole(data, role)
	if err != nil {
		return "", Usagef(c, "--data: %v", err)
	}
	return folder, nil
}

// Where the two roles listen by default.
const (
	ServerListen     = "127.0.0.1:8788"
	ServerOpsListen  = "127.0.0.1:9788"
	SidecarListen    = "127.0.0.1:8787"
	SidecarOpsListen = "127.0.0.1:9787"
)

// RemoteFlags say which server a command calls, with which key, and how it prints the answer.
func RemoteFlags() []cli.Flag { return append(ServerFlags(), ShowingFlags()...) }

// ServerFlags say which server a command calls, and with which key.
func ServerFlags() []cli.Flag {
	own := []cli.Flag{
		TextFlag("url", "http://"+ServerListen, "the `URL` of the server, or of a sidecar"),
		TextFlag("key", "", "a `key` of scope full, as `promptspool keys create --scope full` makes; "+
			"better given by its variable or kept by login"),
		TextFlag("context", "", "the `name` of a server that login keeps, instead of the current one"),
	}
	return Group("Server", append(own, TrustFlags("url")...)...)
}

// Remote returns the client that ServerFlags describe, unless a fault was noted before.
//
// The client is closed when the command's context ends.
func (r *Reader) Remote() (*client.Client, wire.Identity, error) {
	// Only after everything else was sound: a wrong flag must be reported before a
	// missing key.
	if err := r.Err(); err != nil {
		return nil, wire.Identity{}, err
	}
	url, key := r.server()
	trust := r.Trust("url")
	if err := r.Err(); err != nil {
		return nil, wire.Identity{}, err
	}

	cl, err := client.New(client.Config{URL: url, Version: r.c.App.Version, TLS: trust})
	if err != nil {
		return nil, wire.Identity{}, Usagef(r.c, "--url (or %s): %v", Variables("url")[0], err)
	}
	context.AfterFunc(r.c.Context, cl.Close)
	return cl, wire.Identity{Key: wire.Secret(key)}, nil
}

// ArchiveFlags say where a server keeps its data.
func ArchiveFlags() []cli.Flag {
	return []cli.Flag{
		TextFlag("archive", "",
			"where records, templates, keys and people are kept: badger, files in --data, "+
				"for one server and with nothing else to run; or the `URL` postgres://USER@HOST/NAME, "+
				"for any number of servers on one PostgreSQL (default: badger). "+
				"Give a password by the variable, --archive-file or PGPASSFILE"),
		TextFlag("archive-file", "", "read --archive from this `file`"),
	}
}

// ArchiveURL reads archiveFlags: the URL of a PostgreSQL, or "" for Badger in the data folder.
func (r *Reader) ArchiveURL() wire.Secret {
	given := r.Secret("archive")
	if given == "badger" || given == "" {
		return ""
	}
	if !IsPostgres(string(given)) {
		r.Note(Usagef(r.c, "%s: %q is neither badger nor postgres://USER@HOST/NAME",
			SettingName(r.c, "archive"), ShowArchive(string(given))))
		return ""
	}
	return given
}

// IsPostgres reports whether the name of an archive is the URL of a PostgreSQL.
func IsPostgres(dsn string) bool {
	scheme, _, _ := strings.Cut(dsn, "://")
	if scheme != "postgres" && scheme != "postgresql" {
		return false
	}
	_, err := url.Parse(dsn)
	return err == nil
}

// ShowArchive returns the name of an archive without its passwords.
func ShowArchive(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme == "" {
		// It may be a URL with a slip, or a DSN of another form: either may have a
		// password in it.
		if strings.ContainsAny(dsn, "@=:") {
			return "[not a URL]"
		}
		return dsn
	}

	query := u.Query()
	for _, name := range []string{"password", "sslpassword"} {
		if query.Has(name) {
			query.Set(name, "xxxxx")
		}
	}
	u.RawQuery = query.Encode()
	return u.Redacted()
}

// Context is a server that `login` keeps, with the key for it.
type Context struct {
	URL string `json:"url"`
	Key string `json:"key"`
}

// Contexts are the servers that a person has logged in to.
type Contexts struct {
	Current string             `json:"current"` // the one that counts if no other is named
	Named   map[string]Context `json:"contexts"`
}

// contextsFile is in the person's folder for settings, which each system has elsewhere.
func contextsFile() (string, error) {
	dir, err := os.UserConfigDir()
	return filepath.Join(dir, "promptspool", "contexts.json"), err
}

// ReadContexts returns the contexts that are kept.
func ReadContexts() (Contexts, error) {
	all := Contexts{Named: map[string]Context{}}
	path, err := contextsFile()
	if err != nil {
		// A service without a home has none.
		return all, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return all, nil
	}
	return all, errors.Join(err, json.Unmarshal(text, &all))
}

// Names returns the contexts' names, sorted.
func (all Contexts) Names() []string { return slices.Sorted(maps.Keys(all.Named)) }

// Save keeps the contexts in a file that only its owner can read: it has their keys.
func (all Contexts) Save() error {
	path, err := contextsFile()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err != nil {
		return err
	}
	// Texts alone can always be encoded.
	text, _ := json.MarshalIndent(all, "", "  ")
	return os.WriteFile(path, text, 0o600)
}

// ServerFound is where an app's metadata has a sentence about a server that no setting named.
const ServerFound = "server found"

// server returns the URL and the key of the server to call: those of flags, of variables, of a context, or of an `up`
// that was started here. A context that a flag names counts for more than variables.
func (r *Reader) server() (url, key string) {
	all, err := ReadContexts()
	r.Note(err)
	name := r.Text("context")
	chosen, known := all.Named[cmp.Or(name, all.Current)]
	if name != "" && !known {
		r.Reject("context", "is not a context; `promptspool contexts list` shows them"+
			words.DidYouMean(name, all.Names()))
	}

	flagged := name != "" && originOf(r.c, flagOf(r.c, "context")) == "--context"
	given := func(flag string) bool {
		return r.c.IsSet(flag) && hasValue(r.c, flag) && (!flagged || originOf(r.c, flagOf(r.c, flag)) == "--"+flag)
	}
	url = r.Text("url")
	if known && !given("url") {
		url = chosen.URL
	}
	// A key goes to no other server than the one that it was kept for.
	key = r.Text("key")
	if url == chosen.URL && !given("key") {
		key = chosen.Key
	}

	// Last, because a person who names a server may be in the folder of another.
	here := DataHere(r.c)
	if here != "" && !known && !given("url") && r.Sound() {
		switch at, itsKey, err := datafolder.ServerOf(r.c.Context, here); {
		case key == "" && err != nil:
			r.Note(Usagef(r.c, "--key (or %s) is missing, and not found in %s: %v", Variables("key")[0], here, err))
		case at != "":
			url, key = at, cmp.Or(key, itsKey)
			r.c.App.Metadata[ServerFound] = "\nThis asked " + at + ": no server is named, and " + here + " is here."
		}
	}
	if key == "" && r.Sound() {
		r.Required("key")
	}
	return url, key
}

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

// Address is where a listener listens.
type Address struct {
	Flag string // with which it was set: --listen or, of a server in up, --server-listen
	At   string // host:port or unix:/path
}

// Address reads a listener's address.
//
// Without --listen-public it must be on loopback or a unix socket: no password protects the
// operations, and the API's keys would travel in the clear.
func (r *Reader) Address(name string) Address {
	a := Address{Flag: "--" + name, At: r.Text(name)}
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
