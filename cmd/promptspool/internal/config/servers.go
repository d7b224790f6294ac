package config

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
