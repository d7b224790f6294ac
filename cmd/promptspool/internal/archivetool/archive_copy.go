package archivetool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/api/ops"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/datafolder"
	"promptspool/cmd/promptspool/internal/print"
	"promptspool/spool/archive"
	"promptspool/spool/database/badgerdb"
	"promptspool/spool/database/postgres"
	"promptspool/spool/database/transfer"
)

// movable is an archive that can be copied.
type movable interface {
	transfer.Mover
	Size(ctx context.Context) (archive.Size, error)
	Close() error
}

func copyArchive(c *cli.Context) (err error) {
	v := config.Read(c)
	from, to := v.Required("from"), v.Required("to")
	if err := v.Err(); err != nil {
		return err
	}

	source, err := openMovable(c, "from", from, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := openMovable(c, "to", to, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()

	// For the progress alone.
	size, err := source.Size(c.Context)
	if err != nil {
		return err
	}
	shown := print.NewProgress(c, "Copying", "records", int64(size.Records))
	copied, err := transfer.Copy(c.Context, source, target, func(p transfer.Progress) {
		shown.Set(p.Stage, p.Done["records"].Items)
	})
	shown.End()
	if err != nil {
		return copyError(c.Context, err)
	}

	return print.Output(c, copied, func(t *print.Table) {
		t.Row("Copied, and proved the same:")
		for _, kind := range slices.Sorted(maps.Keys(copied)) {
			t.Row("  "+kind, humanize.Comma(copied[kind].Items))
		}
	})
}

// copyError adds to the error of an unfinished copy how to continue.
func copyError(ctx context.Context, err error) error {
	const resume = "what was copied stays: run the same command again to continue"

	switch {
	case ctx.Err() != nil:
		return errors.New("the copy was interrupted; " + resume)
	// A database that went away for a moment is the usual reason.
	case wire.IsCode(err, wire.CodeUnavailable):
		return fmt.Errorf("%s\n%s", Explain(err), resume)
	}
	return errors.New(Explain(err))
}

// openMovable opens an archive for a copy. existing requires that it holds one already.
//
// An archive in use by a server is refused: the copy would miss what the server changes meanwhile.
func openMovable(c *cli.Context, flag, name string, existing bool) (movable, error) {
	dir, isBadger := strings.CutPrefix(name, "badger:")
	switch {
	case isBadger && dir != "":
		return openMovableFolder(c, flag, dir, existing)
	case config.IsPostgres(name):
		return openUnused(c, flag, name, false)
	}
	return nil, config.WrongValue(c, flag, config.ShowArchive(name),
		"is neither badger:DIR nor postgres://USER@HOST/NAME")
}

func openMovableFolder(c *cli.Context, flag, dir string, existing bool) (movable, error) {
	dir, err := datafolder.OfRole(dir, "server")
	if err != nil {
		return nil, config.Usagef(c, "--%s: %v", flag, err)
	}

	// Before the folder is opened: its lock could not say which process to stop.
	err = ops.Control(c.Context, dir, "GET", "/status", nil, &struct{}{})
	switch {
	case err == nil:
		return nil, fmt.Errorf("--%s: a process runs on %s; stop it first: the sidecars keep what comes meanwhile",
			flag, dir)
	case !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED):
		return nil, err
	}

	if existing && !hasArchive(dir) {
		return nil, config.WrongValue(c, flag, dir, "holds no archive; give the data folder of a server")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return badgerdb.Open(badgerdb.Config{Dir: datafolder.Archive(dir), Logger: config.ToolLogger(c)})
}

// copierName is the application_name of these tools' connections; servers have another.
const copierName = "promptspool-copy"

// openUnused opens a PostgreSQL that no server uses. halfSpread allows that spreading it was
// interrupted.
func openUnused(c *cli.Context, flag, dsn string, halfSpread bool) (*postgres.DB, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, err
	}
	query := u.Query()
	// By this name its connections are told from those of servers.
	query.Set("application_name", copierName)
	if !query.Has("statement_timeout") {
		// A step of a copy may take longer than a server's query.
		query.Set("statement_timeout", "0")
	}
	u.RawQuery = query.Encode()

	db, err := postgres.Open(c.Context, postgres.Config{
		DSN: u.String(), Logger: config.ToolLogger(c), HalfSpread: halfSpread,
	})
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	if err := rejectServers(c.Context, db, flag, dsn); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// rejectServers returns an error if servers are connected to a database.
func rejectServers(ctx context.Context, db *postgres.DB, flag, dsn string) error {
	connections, err := serverConnections(ctx, db)
	if err == nil && connections > 0 {
		err = fmt.Errorf("--%s: servers have %d connections to %s; "+
			"stop them first: the sidecars keep what comes meanwhile",
			flag, connections, config.ShowArchive(dsn))
	}
	return err
}

// PostgreSQL lists the connections of a server that has just ended for a moment longer.
const (
	leavingMax   = 2 * time.Second
	leavingPause = 50 * time.Millisecond
)

// serverConnections returns how many connections servers have, once those that ended are gone.
func serverConnections(ctx context.Context, db *postgres.DB) (connections int, err error) {
	for begun := time.Now(); ; time.Sleep(leavingPause) {
		connections, err = db.Servers(ctx)
		if err != nil || connections == 0 || time.Since(begun) > leavingMax {
			return connections, err
		}
	}
}

// RejectHalfCopied returns an error if a copy into a database was begun and not finished, and closes it.
func RejectHalfCopied(ctx context.Context, db movable, name string) error {
	unfinished, err := transfer.Unfinished(ctx, db)
	if err == nil && unfinished {
		err = fmt.Errorf("an archive is being copied to %s, or such a copy broke off: "+
			"run `promptspool archive copy` to its end first", name)
	}
	if err != nil {
		return errors.Join(err, db.Close())
	}
	return nil
}

// spreadReport is what `archive spread` prints.
type spreadReport struct {
	Tables []string `json:"tables"` // that this run has spread
	Shards int      `json:"shards"` // of each table
}

func spreadArchive(c *cli.Context) error {
	v := config.Read(c)
	url := v.Required("archive")
	if err := v.Err(); err != nil {
		return err
	}
	if !config.IsPostgres(url) {
		return config.WrongValue(c, "archive", config.ShowArchive(url), "is not postgres://USER@HOST/NAME")
	}

	db, err := openUnused(c, "archive", url, true)
	if err != nil {
		return errors.New(Explain(err))
	}

	report := spreadReport{Tables: []string{}}
	report.Shards, err = db.Distribute(c.Context, func(table string) {
		_, _ = fmt.Fprintf(c.App.ErrWriter, "Spread %s\n", table)
		report.Tables = append(report.Tables, table)
	})
	switch {
	case err != nil && len(report.Tables) > 0:
		err = fmt.Errorf("%s\nwhat was spread stays: run the same command again to continue", Explain(err))
	case err != nil:
		err = errors.New(Explain(err))
	default:
		// One that started before the first table was spread does not know of it.
		err = rejectServers(c.Context, db, "archive", url)
	}
	err = errors.Join(err, db.Close())
	if err != nil {
		return err
	}

	return print.Outcome(c, report, "Spread by project over %d shards: %d tables now, the others before.",
		report.Shards, len(report.Tables))
}
