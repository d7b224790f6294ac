// Package archivetool has the commands on a server's archive: `promptspool archive ...`, `backup` and `restore`.
package archivetool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/api/ops"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/datafolder"
	"promptspool/cmd/promptspool/internal/print"
	"promptspool/spool/archive"
	"promptspool/spool/database/badgerdb"
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
