package archivetool

import (
	"context"
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
	"promptspool/spool/archive/badgerdb"
	"promptspool/spool/archive/postgres"
	"promptspool/spool/archive/transfer"
)

func archiveCopyCommand() *cli.Command {
	return &cli.Command{
		Name: "copy", Usage: "bring all that a stopped server holds, records, templates, keys and people, into another archive, and prove both the same; run again, it goes on where it ended",
		Flags: append(config.OfCommand("archive copy",
			config.TextFlag("from", "", "the `archive` to read: badger:DIR, DIR the data folder of a server, or postgres://USER@HOST/NAME"),
			config.TextFlag("to", "", "the `archive` to fill, in the same form; it must be empty, or hold what an earlier copy brought"),
		), config.OutputFlag()),
		Action: copyArchive,
	}
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
	size, err := source.Size(c.Context)
	if err != nil {
		return err
	}
	told, end := copyProgress(c, int64(size.Records))
	there, err := transfer.Copy(c.Context, source, target, told)
	end()
	if err != nil {
		return copyError(c.Context, err)
	}
	return print.Output(c, there, func(t *print.Table) {
		t.Row("Copied, and proved the same:")
		for _, kind := range slices.Sorted(maps.Keys(there)) {
			t.Row("  "+kind, humanize.Comma(there[kind].Items))
		}
	})
}

// copyError says what to do about a copy that did not come to its end.
func copyError(ctx context.Context, err error) error {
	const goOn = "what was copied stays: run the same command again to go on"
	switch {
	case ctx.Err() != nil:
		return errors.New("the copy was interrupted; " + goOn)
	case wire.IsCode(err, wire.CodeUnavailable):
		return fmt.Errorf("%s\n%s", Explain(err), goOn)
	}
	return errors.New(Explain(err))
}

// openMovable opens an archive for a copy. One that a server uses is refused: what it changed meanwhile would be missing.
func openMovable(c *cli.Context, flag, name string, existing bool) (movable, error) {
	switch dir, isBadger := strings.CutPrefix(name, "badger:"); {
	case isBadger && dir != "":
		return openMovableFolder(c, flag, dir, existing)
	case config.IsPostgres(name):
		return openUnused(c, flag, name)
	}
	return nil, config.WrongValue(c, flag, config.ShowArchive(name), "is neither badger:DIR nor postgres://USER@HOST/NAME")
}

func openMovableFolder(c *cli.Context, flag, dir string, existing bool) (movable, error) {
	dir, err := datafolder.OfRole(dir, "server")
	if err != nil {
		return nil, config.Usagef(c, "--%s: %v", flag, err)
	}
	err = ops.Control(c.Context, dir, "GET", "/status", nil, &struct{}{})
	switch {
	case err == nil:
		return nil, fmt.Errorf("--%s: a process runs on %s; stop it first: the sidecars keep what comes meanwhile", flag, dir)
	case !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED):
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(datafolder.Archive(dir), "FORMAT")); err != nil && existing {
		return nil, config.WrongValue(c, flag, dir, "holds no archive; give the data folder of a server")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return badgerdb.Open(badgerdb.Config{Dir: datafolder.Archive(dir), Logger: config.ToolLogger(c)})
}

// copierName is what the database knows a copy's connections by; servers have another name.
const copierName = "promptspool-copy"

// openUnused opens a PostgreSQL that no server uses.
func openUnused(c *cli.Context, flag, dsn string) (*postgres.DB, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, err
	}
	q := u.Query()
	q.Set("application_name", copierName)
	if !q.Has("statement_timeout") {
		q.Set("statement_timeout", "0") // a step may take longer than a question of a server's may
	}
	u.RawQuery = q.Encode()
	db, err := postgres.Open(c.Context, postgres.Config{DSN: u.String(), Logger: config.ToolLogger(c)})
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	servers, err := serversOf(c.Context, db)
	if err == nil && servers > 0 {
		err = fmt.Errorf("--%s: servers have %d connections to %s; stop them first: the sidecars keep what comes meanwhile", flag, servers, config.ShowArchive(dsn))
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// A database tells of the connections of a server that has ended for a moment more.
const (
	leavingMax   = 2 * time.Second
	leavingPause = 50 * time.Millisecond
)

// serversOf is how many connections servers have, once those that ended are gone.
func serversOf(ctx context.Context, db *postgres.DB) (connections int, err error) {
	for begun := time.Now(); ; time.Sleep(leavingPause) {
		connections, err = db.Servers(ctx)
		if err != nil || connections == 0 || time.Since(begun) > leavingMax {
			return connections, err
		}
	}
}

// copyProgress tells on stderr how far a copy is, if a person is there to read it: a line each second, over the one before. end ends the line.
func copyProgress(c *cli.Context, records int64) (told func(transfer.Progress), end func()) {
	if !print.IsTerminal(c.App.ErrWriter) {
		return func(transfer.Progress) {}, func() {}
	}
	return tellCopy(c.App.ErrWriter, records, time.Now), func() { fmt.Fprintln(c.App.ErrWriter) }
}

func tellCopy(w io.Writer, records int64, now func() time.Time) func(transfer.Progress) {
	begun, last, stage := now(), time.Time{}, ""
	return func(p transfer.Progress) {
		if p.Stage != stage {
			begun, stage = now(), p.Stage
		} else if now().Sub(last) < time.Second {
			return
		}
		last = now()
		done := p.Done["records"].Items
		line := fmt.Sprintf("%s: %s of %s records", p.Stage, humanize.Comma(done), humanize.Comma(records))
		if passed := last.Sub(begun); passed > time.Second && done > 0 && done <= records {
			rate := float64(done) / passed.Seconds()
			left := time.Duration(float64(records-done) / rate * float64(time.Second))
			line += fmt.Sprintf(", %s a second, %s left", humanize.Comma(int64(rate)), left.Round(time.Second))
		}
		fmt.Fprintf(w, "\r%-78s", line)
	}
}

// RejectHalfCopied refuses a database into which a copy was begun and not finished, and closes it.
func RejectHalfCopied(ctx context.Context, db movable, name string) error {
	_, unfinished, err := db.Copying(ctx)
	if err == nil && unfinished {
		err = fmt.Errorf("an archive is being copied to %s, or such a copy broke off: run `promptspool archive copy` to its end first", name)
	}
	if err != nil {
		return errors.Join(err, db.Close())
	}
	return nil
}
