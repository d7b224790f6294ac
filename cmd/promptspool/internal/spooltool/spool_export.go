package spooltool

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/api/ops"
	"promptspool/cmd/promptspool/internal/print"
)

func exportSpool(c *cli.Context) error {
	err := export(c, func(do func(ops.SpoolEvent) error) error { return eachEvent(c, "", do) })
	if err == nil {
		err = lostInFolder(c)
	}
	return err
}

// lostInFolder returns an error if the disk lost events of a stopped sidecar. A running one counts and
// logs them.
func lostInFolder(c *cli.Context) error {
	data, running, _, err := spoolTarget(c)
	if err != nil || running {
		return err
	}

	status, err := folderStatus(c, data)
	if err == nil && status.Gaps > 0 {
		err = fmt.Errorf("the disk lost %s, which the export does not have; "+
			"`promptspool spool check --data %s` says more", print.Quantity(status.Gaps, "event"), data)
	}
	return err
}

// export writes events as lines to the file that the argument names, which must be new, or to stdout.
//
// It prints on stderr how many there are. One event is in memory at a time.
func export(c *cli.Context, events func(do func(ops.SpoolEvent) error) error) (err error) {
	out := c.App.Writer
	if path := c.Args().First(); path != "" && path != "-" {
		file, failed := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if failed != nil {
			return fmt.Errorf("the file to write to must be new: %w", failed)
		}
		// Synced, because a purge may follow: then this is the only copy.
		defer func() { err = errors.Join(err, file.Sync(), file.Close()) }()
		out = file
	}

	w := bufio.NewWriter(out)
	progress := print.NewProgress(c, "Exporting", "events", 0)
	var (
		count, unread int
		bytes         uint64
		keys          = map[uint32]bool{}
	)
	err = events(func(e ops.SpoolEvent) error {
		if e.Error != "" {
			// It is named as it comes, and counted for the exit code at the end.
			unread++
			fmt.Fprintln(c.App.ErrWriter, "promptspool:", print.Printable(e.Error))
			// The others can still be exported.
			return nil
		}

		count++
		progress.Add(1)
		bytes += uint64(len(e.Data))
		keys[e.Key] = true
		return writeLine(w, e.Data)
	})
	progress.End()
	if err := errors.Join(err, w.Flush()); err != nil {
		return err
	}

	fmt.Fprintf(c.App.ErrWriter, "%s of %s, %s\n",
		print.Quantity(count, "event"), print.Quantity(len(keys), "key"), humanize.IBytes(bytes))
	if unread > 0 {
		return fmt.Errorf("%d could not be read, and are not in the export", unread)
	}
	return nil
}

// writeLine writes an event as it is on disk, and a line break if it does not end with one.
func writeLine(w io.Writer, line []byte) error {
	if n := len(line); n == 0 || line[n-1] != '\n' {
		line = append(line[:n:n], '\n')
	}
	_, err := w.Write(line)
	return err
}
