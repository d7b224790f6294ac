package requests

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"promptspool/api/client"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/filter"
	"promptspool/cmd/promptspool/internal/print"
)

func exportRequests(c *cli.Context) error {
	if c.NArg() > 1 {
		return config.Usagef(c, "give one file, or none for stdout")
	}
	v := config.Read(c)
	order := v.OneOf("order")
	_, selected := filter.Read(v)
	cl, id, err := v.Remote()
	if err != nil {
		return err
	}

	search := wire.Search{FilterGroup: selected, Cursor: v.Text("cursor")}
	if order == "asc" {
		// The server keeps its list newest first. Any other order is sorted, and costs it
		// memory.
		search.SortBy, search.SortOrder = "list_time", order
	}
	out, closeOut, err := exportTarget(c, search.Cursor != "")
	if err != nil {
		return err
	}

	progress := print.NewProgress(c, "Exporting", "events", 0)
	// Without it, each line would be a system call.
	w := bufio.NewWriterSize(out, 1<<20)
	lines, err := writeExport(c.Context, cl, id, search, w, progress)
	progress.End()
	err = errors.Join(err, w.Flush(), closeOut())
	if err != nil {
		return err
	}

	fmt.Fprintf(c.App.ErrWriter, "%s exported.\n", print.Quantity(lines, "event"))
	return nil
}

// writeExport writes the lines of an export, and counts them.
func writeExport(
	ctx context.Context, cl *client.Client, id wire.Identity, s wire.Search, w *bufio.Writer, progress *print.Progress,
) (lines int, err error) {
	// Lines after the last mark come again: an import recognises an event that it gets twice.
	write := func(line []byte) error {
		lines++
		progress.Add(1)
		_, err := w.Write(line)
		return errors.Join(err, w.WriteByte('\n'))
	}

	err = inRequests(ctx, &s.Cursor, func() (done bool, err error) {
		mark, err := cl.Export(ctx, id, s, write)
		s.Cursor = mark.Cursor
		return mark.Done, err
	})

	return lines, err
}

// inRequests repeats a request that exports a part after a cursor, until all is done. It
// gives up after a few that fail and do not get any further: a slow network may break a
// long export many times. Its error says where to resume.
func inRequests(ctx context.Context, cursor *string, call func() (done bool, err error)) error {
	for failures := 0; ; {
		from := *cursor
		done, err := call()
		switch {
		case done && err == nil:
			return nil
		case *cursor != from:
			failures = 0
		default:
			failures++
		}

		if failures > 0 && err == nil {
			err = wire.Unavailable(0, "The server's answer was cut.")
		}
		switch {
		case err == nil, failures <= 3 && retriesExport(ctx, err):
		case *cursor == "", wire.IsCode(err, wire.CodeInvalid): // the same again would be refused again
			return err
		default:
			return fmt.Errorf("the export broke off: %w\nResume with the same command and --cursor %s",
				message(err), print.Printable(*cursor))
		}
	}
}

// retriesExport reports whether an export may continue after an error.
//
// If the key has another export running it waits first: the server may take a moment to notice
// that an answer broke off.
func retriesExport(ctx context.Context, err error) bool {
	if wire.IsCode(err, wire.CodeTooMany) {
		select {
		case <-time.After(wire.AsError(err).RetryAfter):
		case <-ctx.Done():
		}

		return ctx.Err() == nil
	}

	return ctx.Err() == nil && wire.IsCode(err, wire.CodeUnavailable)
}

// exportTarget opens the file that the argument names, or stdout if there is none.
//
// The file must not exist, unless an export is resumed or --force is given.
func exportTarget(c *cli.Context, resumed bool) (io.Writer, func() error, error) {
	path := c.Args().First()
	if path == "" || path == "-" {
		return c.App.Writer, func() error { return nil }, nil
	}

	mode := os.O_CREATE | os.O_WRONLY | os.O_EXCL
	switch {
	case resumed:
		// The output of an earlier run stays in front.
		mode = os.O_CREATE | os.O_WRONLY | os.O_APPEND
	case c.Bool("force"):
		mode = os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	}
	file, err := os.OpenFile(path, mode, 0o600)
	if errors.Is(err, os.ErrExist) {
		err = fmt.Errorf("%s already exists; give a new file, or --force to write over it", path)
	}
	if err != nil {
		return nil, nil, err
	}
	return file, func() error { return errors.Join(file.Sync(), file.Close()) }, nil
}
