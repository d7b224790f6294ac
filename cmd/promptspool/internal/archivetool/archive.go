// Package archivetool has the commands on a server's archive: `promptspool archive ...`, `backup` and `restore`.
package archivetool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
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

// ArchiveCommand is `promptspool archive`: it verifies archives, copies them and spreads them over nodes.
func ArchiveCommand() *cli.Command {
	return config.Commands("archive",
		"verify a server's archive, copy it into another, or spread it over several nodes",
		config.Command("copy",
			"copy everything a stopped server holds, records, templates, keys and people, into another archive, "+
				"and prove both the same; can be interrupted and resumed",
			copyArchive, []cli.Flag{
				config.TextFlag("from", "",
					"the `archive` to read: badger:DIR, DIR the data folder of a server, "+
						"or postgres://USER@HOST/NAME"),
				config.TextFlag("to", "",
					"the `archive` to fill, in the same form; it must be empty, or hold what an earlier copy "+
						"brought"),
			}, config.OutputFlags()),

		config.Command("check",
			"read and verify every record, and prove that lists, counts and templates agree with them",
			checkArchiveCommand, []cli.Flag{
				config.ServerDataFlag(),
				config.TextFlag("archive", "",
					"a `database` that no server uses at the moment, postgres://USER@HOST/NAME, "+
						"in the place of --data"),
			}, config.OutputFlags()),

		config.Command("spread",
			"spread a database over the workers of a Citus, by project, empty or with records in it; "+
				"can be interrupted and resumed",
			spreadArchive, []cli.Flag{
				config.TextFlag("archive", "", "the `database`, on the coordinator of a Citus, that no server uses "+
					"at the moment, postgres://USER@HOST/NAME"),
			}, config.OutputFlags()))
}

// Live is the archive of this process, as the control socket shows it.
type Live struct{ DB *badgerdb.DB }

// Backup writes a backup of the archive.
func (l Live) Backup(ctx context.Context, w io.Writer) error {
	_, err := l.DB.Backup(ctx, w)
	return err
}

// Check verifies the archive.
func (l Live) Check(ctx context.Context) (any, error) { return checkArchive(ctx, l.DB) }

// archiveReport is what `archive check` prints about a sound archive. A damaged one is an error.
type archiveReport struct {
	Records   uint64 `json:"records"`
	Bytes     uint64 `json:"bytes"` // of their events' bodies, as they were sent
	DiskBytes int64  `json:"disk_bytes"`
}

// checkable is an archive that can verify itself.
type checkable interface {
	Check(ctx context.Context) error
	Size(ctx context.Context) (archive.Size, error)
}

func checkArchive(ctx context.Context, db checkable) (archiveReport, error) {
	if err := db.Check(ctx); err != nil {
		return archiveReport{}, err
	}
	size, err := db.Size(ctx)
	return archiveReport{size.Records, size.Bytes, size.DiskBytes}, err
}

// archiveTarget finds the archive of --data, and reports whether a server runs on it.
//
// A running server is asked through its control socket; otherwise the archive is opened here.
func archiveTarget(c *cli.Context) (data string, running bool, err error) {
	data, err = config.RoleData(c, "server")
	if err != nil {
		return data, false, err
	}

	var status struct{ Role, Archive string }
	err = ops.Control(c.Context, data, "GET", "/status", nil, &status)
	switch {
	case err == nil && status.Role != "server":
		return data, false, config.WrongValue(c, "data", data,
			"is the folder of a "+status.Role+", which has no archive; give a server's")
	case err == nil && config.IsPostgres(status.Archive):
		return data, false, fmt.Errorf("this server keeps its archive in PostgreSQL, %s, which has its own tools: "+
			"pg_dump writes a backup, pg_restore reads one, pg_amcheck verifies. "+
			"`promptspool archive check --archive` verifies it while no server runs", status.Archive)
	case err == nil:
		return data, true, nil
	case !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED):
		return data, false, err
	}

	// No server runs. Opening a folder without an archive would make one.
	if !hasArchive(data) {
		return data, false, config.WrongValue(c, "data", data,
			"holds no archive; give the data folder of a server (one on PostgreSQL is backed up by pg_dump)")
	}
	return data, false, nil
}

// hasArchive reports whether a server's data folder holds a Badger archive.
func hasArchive(data string) bool {
	_, err := os.Stat(filepath.Join(datafolder.Archive(data), "FORMAT"))
	return err == nil
}

// withArchive opens the archive of a stopped server.
//
// With readAll every file is read first, so that blocks that the disk cannot read are left out.
func withArchive[T any](
	c *cli.Context, data string, readAll bool, do func(context.Context, *badgerdb.DB) (T, error),
) (result T, err error) {
	db, err := badgerdb.Open(badgerdb.Config{
		Dir:     datafolder.Archive(data),
		Logger:  config.ToolLogger(c),
		ReadAll: readAll,
	})
	if err != nil {
		return result, err
	}
	result, err = do(c.Context, db)
	return result, errors.Join(err, db.Close())
}

func checkArchiveCommand(c *cli.Context) error {
	if url := config.Read(c).Text("archive"); url != "" {
		return checkDatabase(c, url)
	}
	data, running, err := archiveTarget(c)
	if err != nil {
		return err
	}

	progress := print.NewProgress(c, "Verifying", "", 0)
	var report archiveReport
	if running {
		err = ops.ControlLong(c.Context, data, "GET", "/archive/check", nil, func(r io.Reader) error {
			return json.NewDecoder(r).Decode(&report)
		})
	} else {
		report, err = withArchive(c, data, true, func(ctx context.Context, db *badgerdb.DB) (archiveReport, error) {
			return checkArchive(ctx, db)
		})
	}
	progress.End()
	return printCheck(c, report, err)
}

// checkDatabase checks a PostgreSQL. No server may use it: what one writes meanwhile would look like damage.
func checkDatabase(c *cli.Context, url string) error {
	if !config.IsPostgres(url) {
		return config.WrongValue(c, "archive", config.ShowArchive(url),
			"is not postgres://USER@HOST/NAME; for Badger give --data")
	}
	db, err := openUnused(c, "archive", url, false)
	if err != nil {
		return err
	}

	progress := print.NewProgress(c, "Verifying", "", 0)
	report, err := checkArchive(c.Context, db)
	progress.End()
	return errors.Join(printCheck(c, report, err), db.Close())
}

// printCheck prints the report of a check, or turns its error into a verdict.
func printCheck(c *cli.Context, report archiveReport, err error) error {
	if e, ok := errors.AsType[*wire.Error](err); ok {
		if e.Code == wire.CodeUnavailable {
			// The archive was not read, so it may be sound.
			return errors.New(Explain(err))
		}
		// The message is for callers of the API. Here a person looks for the damage.
		if e.Cause != nil {
			err = e.Cause
		}
	}
	if err != nil {
		return fmt.Errorf("the archive is damaged; restore a backup, and see the log: %w", err)
	}

	return print.Outcome(c, report, "Sound: %s and all else verified, %s of disk.",
		print.Quantity(report.Records, "request"), humanize.IBytes(uint64(report.DiskBytes)))
}

// Explain returns the message of a database's error, with its cause.
func Explain(err error) string {
	e, ok := errors.AsType[*wire.Error](err)
	switch {
	case !ok:
		return err.Error()
	case e.Cause == nil:
		return e.Message
	}
	return e.Message + " (" + strings.Join(strings.Fields(e.Cause.Error()), " ") + ")"
}

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
