package config

import (
	"net/url"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
)

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
