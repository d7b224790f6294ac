package archivetool

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/datafolder"
	"promptspool/cmd/promptspool/internal/print"
	"promptspool/metrics"
	"promptspool/registry/prices"
	"promptspool/spool/archive/records"
	"promptspool/spool/database/badgerdb"
)

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
