package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/api/ops"
	"promptspool/spool/archive/badgerdb"
)

func serverDataFlag() cli.Flag {
	return stringFlag("data", "", "the server's data `folder`; for up it is .promptspool/server")
}

func archiveDir(data string) string { return filepath.Join(data, "archive") }

// liveArchive is the archive of this process, as the control socket shows it.
type liveArchive struct{ db *badgerdb.DB }

func (l liveArchive) Backup(ctx context.Context, w io.Writer) error {
	_, err := l.db.Backup(ctx, w)
	return err
}

func (l liveArchive) Check(ctx context.Context) (any, error) { return checkArchive(ctx, l.db) }

// archiveReport is what `archive check` tells of a sound archive; one that is not is an error.
type archiveReport struct {
	Records   uint64 `json:"records"`
	Bytes     uint64 `json:"bytes"` // of their events' bodies, as they were sent
	DiskBytes int64  `json:"disk_bytes"`
}

func checkArchive(ctx context.Context, db *badgerdb.DB) (archiveReport, error) {
	if err := db.Check(ctx); err != nil {
		return archiveReport{}, err
	}
	size, err := db.Size(ctx)
	return archiveReport{size.Records, size.Bytes, size.DiskBytes}, err
}

// archiveTarget finds the archive of --data, and whether a server runs on it: then it is asked, through its control socket; else it
// is opened here.
func archiveTarget(c *cli.Context) (data string, running bool, err error) {
	if data, err = need(c, "data"); err != nil {
		return data, false, err
	}
	var status struct{ Role, Archive string }
	err = ops.Control(c.Context, data, "GET", "/status", nil, &status)
	switch {
	case err == nil && status.Role != "server":
		return data, false, wrong(c, "data", data, "is the folder of a "+status.Role+", which has no archive; give a server's")
	case err == nil && isPostgres(status.Archive):
		return data, false, fmt.Errorf("this server keeps its archive in PostgreSQL, %s, which has tools of its own: pg_dump writes a backup, pg_restore reads one, pg_amcheck verifies", status.Archive)
	case err == nil:
		return data, true, nil
	case !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED):
		return data, false, err
	}
	if _, err := os.Stat(filepath.Join(archiveDir(data), "FORMAT")); err != nil {
		return data, false, wrong(c, "data", data, "holds no archive; give the data folder of a server (one on PostgreSQL is backed up by pg_dump)")
	}
	return data, false, nil
}

// withArchive opens the archive of a stopped server.
func withArchive(c *cli.Context, data string, do func(*badgerdb.DB) error) error {
	db, err := badgerdb.Open(badgerdb.Config{Dir: archiveDir(data), Logger: toolLogger(c)})
	if err != nil {
		return err
	}
	return errors.Join(do(db), db.Close())
}

func archiveGroup() *cli.Command {
	return &cli.Command{
		Name: "archive", Usage: "prove a server's archive whole, and bring it into another",
		Subcommands: []*cli.Command{archiveCopyCommand(), {
			Name: "check", Usage: "read and verify every record, and prove that lists, counts and templates agree with them",
			Flags: []cli.Flag{serverDataFlag(), outputFlag()},
			Action: func(c *cli.Context) error {
				data, running, err := archiveTarget(c)
				if err != nil {
					return err
				}
				var report archiveReport
				if running {
					err = ops.ControlLong(c.Context, data, "GET", "/archive/check", nil, func(r io.Reader) error { return json.NewDecoder(r).Decode(&report) })
				} else {
					err = withArchive(c, data, func(db *badgerdb.DB) (err error) { report, err = checkArchive(c.Context, db); return err })
				}
				if err != nil {
					return fmt.Errorf("the archive is damaged; restore a backup, and see the log: %w", err)
				}
				return output(c, report, func(t *table) {
					t.row(fmt.Sprintf("Sound: %s records, each whole, %s of disk.", humanize.Comma(int64(report.Records)), humanize.IBytes(uint64(report.DiskBytes))))
				})
			},
		}},
	}
}
