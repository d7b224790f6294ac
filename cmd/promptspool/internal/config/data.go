package config

import (
	"context"
	"net/url"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/api/client"
	"promptspool/api/wire"
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
