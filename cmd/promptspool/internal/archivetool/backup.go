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
	"promptspool/spool/archive"
	"promptspool/spool/archive/badgerdb"
)

// BackupCommand writes a backup of a server.
func BackupCommand() *cli.Command {
	return &cli.Command{
		Name: "backup", Usage: "write all that a server holds, records, templates, keys and people, to a file, beside its running; `-` writes to stdout", ArgsUsage: "FILE",
		Flags: []cli.Flag{config.ServerDataFlag(), config.OutputFlag()}, Action: backup,
	}
}

// RestoreCommand makes a server's data folder of a backup.
func RestoreCommand() *cli.Command {
	return &cli.Command{
		Name: "restore", Usage: "make a server's data folder of a backup, and prove it whole; `-` reads stdin", ArgsUsage: "FILE",
		Flags: []cli.Flag{config.TextFlag("data", "", "the `folder` to make the archive in; there must be none in it"), config.OutputFlag()}, Action: restore,
	}
}

func backup(c *cli.Context) error {
	path, err := config.Argument(c, "the file to write, which must be new, or -")
	if err != nil {
		return err
	}
	data, running, err := archiveTarget(c)
	if err != nil {
		return err
	}
	var made badgerdb.Backup
	write := func(w io.Writer) error {
		if !running {
			return withArchive(c, data, false, func(db *badgerdb.DB) (err error) { made, err = db.Backup(c.Context, w); return err })
		}
		return ops.ControlLong(c.Context, data, "GET", "/archive/backup", nil, func(r io.Reader) (err error) {
			made, err = badgerdb.ReadBackup(io.TeeReader(r, w), nil) // verified on its way
			if err != nil {
				err = fmt.Errorf("%w; the server's log may say why", err)
			}
			return err
		})
	}
	if path == "-" {
		if err := write(c.App.Writer); err != nil {
			return err
		}
		fmt.Fprintf(c.App.ErrWriter, "%s, %s\n", print.Quantity(made.Records, "record"), print.Quantity(made.Keys, "entry"))
		return nil
	}
	if err := writeNew(path, write); err != nil {
		return err
	}
	return print.Output(c, made, func(t *print.Table) {
		t.Row(fmt.Sprintf("The backup holds %s, %s in all, verified.", print.Quantity(made.Records, "record"), print.Quantity(made.Keys, "entry")))
	})
}

// writeNew makes a file that was not there, whole and durable, or none. Until it is whole it is called FILE.partial.
func writeNew(path string, write func(io.Writer) error) (err error) {
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is there already; give a new file", path)
	}
	partial := path + ".partial"
	f, err := os.OpenFile(partial, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	if err := errors.Join(write(w), w.Flush(), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(partial))
	}
	if err := os.Rename(partial, path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func restore(c *cli.Context) error {
	path, err := config.Argument(c, "the backup to read, or -")
	if err != nil {
		return err
	}
	data, err := config.RoleData(c, "server")
	if err != nil {
		return err
	}
	in, err := config.FileOrStdin(path)
	if err != nil {
		return err
	}
	defer in.Close()

	if err := os.MkdirAll(data, 0o700); err != nil {
		return fmt.Errorf("the data folder: %w", err)
	}
	made, err := badgerdb.Restore(c.Context, badgerdb.Config{Dir: datafolder.Archive(data), Logger: config.ToolLogger(c)}, in, maskRestored(c.App.Version))
	if err != nil {
		return err
	}
	return print.Output(c, made, func(t *print.Table) {
		t.Row(fmt.Sprintf("Restored and verified: %s, %s.", print.Quantity(made.Records, "record"), print.Quantity(made.Keys, "entry")))
	})
}

// maskRestored returns what masks the credentials in a restored archive that an older version stored in the clear, so
// that a backup brings none back.
func maskRestored(version string) func(context.Context, *badgerdb.DB) error {
	return func(ctx context.Context, db *badgerdb.DB) error {
		accounts, err := db.Accounts()
		if err != nil {
			return err
		}

		records := archive.New(archive.Config{Store: db, Metrics: metrics.New("server", version), Audit: db})
		masked := 0
		for _, account := range accounts {
			n, err := records.MaskAll(ctx, wire.Identity{Account: account})
			if err != nil {
				return fmt.Errorf("mask credentials: %w", err)
			}
			masked += n
		}
		if masked == 0 {
			return nil
		}
		return db.Erase(ctx)
	}
}
