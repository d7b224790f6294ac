package connection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Defaults for what the connection string leaves open.
const (
	connectTimeout   = 5 * time.Second
	statementTimeout = "30s"
	connectionsMax   = 16
)

// ApplicationName is what the database knows servers by. A copy uses another one.
const ApplicationName = "promptspool"

// poolConfig parses the connection string and fills in our defaults.
func poolConfig(dsn string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		// pgx leaves the password out of this error.
		return nil, fmt.Errorf("the connection string of the database: %w", err)
	}

	settings := config.ConnConfig.RuntimeParams
	if settings["statement_timeout"] == "" {
		settings["statement_timeout"] = statementTimeout
	}
	config.ConnConfig.Tracer = cmp.Or(newBound(settings["statement_timeout"]), &bound{})
	if settings["application_name"] == "" {
		settings["application_name"] = ApplicationName
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	if !saysConnections(dsn) {
		config.MaxConns = connectionsMax
	}

	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		// Times are read as UTC, whatever this machine's time zone is.
		conn.TypeMap().RegisterType(&pgtype.Type{
			Name:  "timestamptz",
			OID:   pgtype.TimestamptzOID,
			Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
		})
		return nil
	}

	return config, nil
}

// saysConnections reports whether a connection string sets the size of the pool.
func saysConnections(dsn string) bool {
	if u, err := url.Parse(dsn); err == nil && u.Scheme != "" {
		return u.Query().Has("pool_max_conns")
	}
	return strings.Contains(dsn, "pool_max_conns")
}

// search=prefer-standby in the connection string sends searches, statistics and exports to a
// standby. Their answers are as old as its data.
const (
	searchParameter = "search"
	searchStandby   = "prefer-standby"
)

// searchLifetime is how long a connection for searches is used. New ones find a standby that
// was away.
const searchLifetime = 5 * time.Minute

var errSearch = errors.New("the connection string of the database: search must be " + searchStandby +
	" (search a standby), or left out to search the primary")

// newPools opens the pool for everything that must be current, and the pool for searches.
// They are the same unless the connection string asks for a standby.
func newPools(ctx context.Context, config *pgxpool.Config) (pool, searches *pgxpool.Pool, err error) {
	settings := config.ConnConfig.RuntimeParams
	wanted, standby := settings[searchParameter]
	delete(settings, searchParameter)
	if standby && wanted != searchStandby {
		return nil, nil, errSearch
	}

	if pool, err = pgxpool.NewWithConfig(ctx, config); err != nil || !standby {
		return pool, pool, err
	}
	// If no standby answers, pgx falls back to the primary.
	config = config.Copy()
	config.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPreferStandby
	config.MaxConnLifetime = searchLifetime
	if searches, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		pool.Close()
		return nil, nil, fmt.Errorf("for searches: %w", err)
	}

	return pool, searches, nil
}

// where describes the database without its password.
func where(c *pgx.ConnConfig) string {
	hosts := []string{hostPort(c.Host, c.Port)}
	for _, f := range c.Fallbacks {
		// pgx has each host twice, with TLS and without.
		if h := hostPort(f.Host, f.Port); h != hosts[len(hosts)-1] {
			hosts = append(hosts, h)
		}
	}

	return fmt.Sprintf("%s at %s", c.Database, strings.Join(hosts, ","))
}

func hostPort(host string, port uint16) string { return fmt.Sprintf("%s:%d", host, port) }
