package archivetool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"promptspool/api/ops"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/datafolder"
	"promptspool/cmd/promptspool/internal/print"
	"promptspool/metrics"
	"promptspool/registry/prices"
	"promptspool/spool/archive/records"
	"promptspool/spool/database/badgerdb"
	"promptspool/spool/disk"
)

// BackupCommand is `promptspool backup`: it writes a backup of a server.
func BackupCommand() *cli.Command {
	return config.Command("backup FILE",
		"back up a server, running or stopped, to a file: records, templates, keys and people; `-` writes to stdout",
		config.WithArgument("the file to write, which must be new, or -", backup),
		[]cli.Flag{config.ServerDataFlag()}, config.OutputFlags())
}

func backup(c *cli.Context, path string) error {
	data, running, err := archiveTarget(c)
	if err != nil {
		return err
	}

	var made badgerdb.Backup
	write := func(w io.Writer) (err error) {
		progress := print.NewProgress(c, "Writing", "", 0)
		defer progress.End()
		w = io.MultiWriter(w, progress)
		if running {
			made, err = fetchBackup(c.Context, data, w)
			return err
		}
		made, err = withArchive(c, data, false, func(ctx context.Context, db *badgerdb.DB) (badgerdb.Backup, error) {
			return db.Backup(ctx, w)
		})
		return err
	}

	// The numbers go to stderr, because stdout has the backup.
	if path == "-" {
		if err := write(c.App.Writer); err != nil {
			return err
		}
		fmt.Fprintf(c.App.ErrWriter, "%s of calls, spans and sessions, %s\n",
			print.Quantity(made.Records, "record"), print.Quantity(made.Keys, "entry"))
		return nil
	}

	if err := writeNew(path, write); err != nil {
		return err
	}
	return print.Outcome(c, made, "The backup holds %s of calls, spans and sessions, %s in all, verified.",
		print.Quantity(made.Records, "record"), print.Quantity(made.Keys, "entry"))
}

// fetchBackup copies the backup that a running server makes, and verifies it on the way.
func fetchBackup(ctx context.Context, data string, w io.Writer) (made badgerdb.Backup, err error) {
	err = ops.ControlLong(ctx, data, "GET", "/archive/backup", nil, func(r io.Reader) (err error) {
		// Read as a restore would read it: a connection that broke must not leave half a
		// backup.
		made, err = badgerdb.ReadBackup(io.TeeReader(r, w), nil)
		if err != nil {
			err = fmt.Errorf("%w; the server's log may say why", err)
		}
		return err
	})
	return made, err
}

// writeNew creates a file, whole and durable, or none. It must not exist yet.
//
// Until the file is whole it is called FILE.partial.
func writeNew(path string, write func(io.Writer) error) (err error) {
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s already exists; give a new file", path)
	}

	partial := path + ".partial"
	f, err := os.OpenFile(partial, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	// Synced before it has its name: a file of this name is always whole.
	if err := errors.Join(write(w), w.Flush(), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(partial))
	}

	if err := os.Rename(partial, path); err != nil {
		return err
	}
	// The new name must survive a power failure, too.
	return disk.SyncDir(filepath.Dir(path))
}

// RestoreCommand is `promptspool restore`: it makes a server's data folder from a backup.
func RestoreCommand() *cli.Command {
	return config.Command("restore FILE",
		"restore a backup into a new data folder and verify it; `-` reads stdin",
		config.WithArgument("the backup to read, or -", restore), []cli.Flag{
			config.TextFlag("data", "", "the `folder` to make the archive in; there must be none in it"),
		}, config.OutputFlags())
}

func restore(c *cli.Context, path string) error {
	v := config.Read(c)
	v.Required("data")
	if err := v.Err(); err != nil {
		return err
	}
	data, err := config.RoleData(c, "server")
	if err != nil {
		return err
	}
	in, size, err := config.FileOrStdin(path)
	if err != nil {
		return err
	}
	defer in.Close()

	if err := os.MkdirAll(data, 0o700); err != nil {
		return fmt.Errorf("the data folder: %w", err)
	}
	// A folder with an archive in it is refused: nothing is ever restored over data.
	target := badgerdb.Config{Dir: datafolder.Archive(data), Logger: config.ToolLogger(c)}
	progress := print.NewProgress(c, "Restoring", "", size)
	made, err := badgerdb.Restore(c.Context, target, io.TeeReader(in, progress), maskRestored(c.App.Version))
	progress.End()
	if err != nil {
		return err
	}

	return print.Outcome(c, made, "Restored and verified: %s of calls, spans and sessions, %s.",
		print.Quantity(made.Records, "record"), print.Quantity(made.Keys, "entry"))
}

// maskRestored returns a function that masks credentials in a restored archive.
//
// An older version may have stored them in the clear; a backup must not bring them back.
func maskRestored(version string) func(context.Context, *badgerdb.DB) error {
	return func(ctx context.Context, db *badgerdb.DB) error {
		accounts, err := db.Accounts(ctx)
		if err != nil {
			return err
		}

		records := records.New(records.Config{
			Store:   db,
			Prices:  prices.BuiltIn(),
			Metrics: metrics.New("server", version),
			Audit:   db,
		})
		masked := 0
		for _, account := range accounts {
			n, err := records.MaskAll(ctx, wire.Identity{Account: account})
			if err != nil {
				return fmt.Errorf("mask credentials: %w", err)
			}
			masked += n
		}

		// The database keeps old values until it is told to erase them.
		if masked > 0 {
			return db.Erase(ctx)
		}
		return nil
	}
}
