package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"promptspool/api/wire"
)

// retryAfter is when a caller may try again while the database is away.
const retryAfter = 5 * time.Second

// Messages by SQLSTATE (https://www.postgresql.org/docs/15/errcodes-appendix.html), or by its class, the first two letters. All of them
// are CodeUnavailable: the write or the question was all right, and may be sent again.
var remedies = map[string]string{
	"08P01": "A pool between this server and the database refuses what it asks for; for PgBouncer set ignore_startup_parameters = statement_timeout.",
	"08":    "The connection to the database was lost. Look at its log if this goes on.",
	"25006": "The database takes no writes: this host is a standby. Name all hosts in --archive and add target_session_attrs=read-write.",
	"26000": mixedUp,
	"28":    "The database refuses this server's user. Check user and password in --archive, and the database's pg_hba.conf.",
	"3D000": "There is no such database. Create it (createdb), or correct the name in --archive.",
	"40":    "Others changed the same records at the same time, several times in a row. Send it again.",
	"42P05": mixedUp,
	"42501": "The database user may not do this. Make it the owner of the tables, or grant it all rights on them.",
	"42P01": "A table is missing in the database. Restart the server, which makes what is missing, or restore a backup.",
	"53":    "The database is short of memory or of another resource. Look at its log.",
	"53100": "The database's disk is full. Make room there; the server goes on by itself.",
	"53300": "The database has too many connections. Lower pool_max_conns in --archive, raise the database's max_connections, or put PgBouncer in between.",
	"55":    "The database is busy with a change of its tables. Send it again.",
	"57014": "The database took longer than statement_timeout. Narrow the question by accepted_at; the time is set by statement_timeout in --archive.",
	"57P01": "The database is stopping. The server goes on by itself when it is back.",
	"57P02": "The database has crashed and is recovering. The server goes on by itself when it is back.",
	"57P03": "The database is starting, or a standby that takes no connections yet. The server goes on by itself when it is there.",
	"58":    "The database cannot read or write its files. Look at its log and its disk.",
}

// mixedUp is for a statement that is not prepared, or is already: on another connection than this server thinks.
const mixedUp = "A pool between this server and the database gives out connections by transaction, and does not know prepared statements. Add default_query_exec_mode=cache_describe to --archive."

// failure makes a wire error of any error; one that is a wire error already is left as it is.
func failure(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*wire.Error](err); ok {
		return e
	}
	if ctx.Err() != nil {
		return wire.Unavailable(0, "The call ended before it had its answer: %w", ctx.Err())
	}
	if errors.Is(err, errConflict) {
		return unavailable(remedies["40"], err)
	}
	state := sqlState(err)
	for _, code := range []string{state, state[:min(2, len(state))]} {
		if message := remedies[code]; message != "" {
			return unavailable(message, err)
		}
	}
	if away(err) {
		return unavailable("The database is away. Check that it runs and that --archive names the right host and port; the server goes on by itself when it is back.", err)
	}
	return &wire.Error{Code: wire.CodeInternal, Message: "The database could not carry this out; the server's log says why.", Cause: err}
}

func unavailable(message string, cause error) error {
	return &wire.Error{Code: wire.CodeUnavailable, Message: message, RetryAfter: retryAfter, Cause: cause}
}

// away says whether the database could not be reached, went away, or is not ready yet: another try may find it, or another host.
func away(err error) bool {
	switch state := sqlState(err); {
	case state == "57P01", state == "57P02", state == "57P03", state == "25006", strings.HasPrefix(state, "08"), state == "53300":
		return true
	case state != "":
		return false
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	_, network := errors.AsType[net.Error](err)
	return connecting || network || pgconn.SafeToRetry(err) || errors.Is(err, pgconn.ErrConnClosed) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

// refused reports whether the database refuses a statement as it is: sending it again changes nothing. Where a person can
// mend it (a table is missing, rights are), it counts as unavailable instead.
func refused(err error) bool {
	state := sqlState(err)

	return wire.IsCode(err, wire.CodeInternal) && (strings.HasPrefix(state, "42") || strings.HasPrefix(state, "0A"))
}

// stale says whether the connection leads to a host that no longer takes writes.
func stale(err error) bool { return sqlState(err) == "25006" }

// where names the database without its password.
func where(c *pgx.ConnConfig) string {
	hosts := []string{hostPort(c.Host, c.Port)}
	for _, f := range c.Fallbacks {
		if h := hostPort(f.Host, f.Port); h != hosts[len(hosts)-1] { // once with TLS and once without
			hosts = append(hosts, h)
		}
	}
	return fmt.Sprintf("%s at %s", c.Database, strings.Join(hosts, ","))
}

func hostPort(host string, port uint16) string { return fmt.Sprintf("%s:%d", host, port) }

// saysConnections says whether a connection string bounds the connections.
func saysConnections(dsn string) bool {
	if u, err := url.Parse(dsn); err == nil && u.Scheme != "" {
		return u.Query().Has("pool_max_conns")
	}
	return strings.Contains(dsn, "pool_max_conns")
}
