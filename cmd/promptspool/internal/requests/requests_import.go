package requests

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/urfave/cli/v2"

	"promptspool/api/client"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

// imported is what became of the lines.
type imported struct {
	Accepted  int           `json:"accepted"`
	Duplicate int           `json:"duplicate"` // the server had them
	Refused   []refusedLine `json:"refused"`
}

type refusedLine struct {
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

func importEvents(c *cli.Context) error {
	if c.NArg() != 1 {
		return config.Usagef(c, "give one file, or - for stdin")
	}
	cl, id, err := config.Read(c).Remote()
	if err != nil {
		return err
	}
	in, size, err := config.FileOrStdin(c.Args().First())
	if err != nil {
		return err
	}
	defer in.Close()

	// The window of sidecars: a larger one would cost the server memory.
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	if err != nil {
		return err
	}
	im := importer{client: cl, key: id.Key, encoder: encoder, done: imported{Refused: []refusedLine{}}}
	progress := print.NewProgress(c, "Sending", "", size)
	err = im.run(c.Context, io.TeeReader(in, progress))
	if progress.End(); err != nil {
		sent := print.Quantity(im.done.Accepted+im.done.Duplicate, "event")
		return fmt.Errorf("%w\n%s sent before; run the same command again: the server recognises what it has",
			err, sent)
	}
	if err := print.Output(c, im.done, func(t *print.Table) {
		t.Row("accepted", im.done.Accepted)
		t.Row("already present", im.done.Duplicate)
		t.Row("refused", len(im.done.Refused))
		for _, r := range im.done.Refused {
			t.Row(fmt.Sprintf("  line %d", r.Line), r.Reason)
		}
	}); err != nil {
		return err
	}
	if n := len(im.done.Refused); n > 0 {
		return fmt.Errorf("the server refused %s", print.Quantity(n, "line"))
	}
	return nil
}

// numberedLine is a line of the file with an event in it.
type numberedLine struct {
	number int
	id     string
	text   []byte
}

// importer sends lines to POST /sync/events in batches. The server folds each event once, so a file may be sent again.
type importer struct {
	client  *client.Client
	key     wire.Secret
	encoder *zstd.Encoder
	done    imported
}

func (im *importer) run(ctx context.Context, in io.Reader) error {
	lines := bufio.NewScanner(in)
	// The default of 64 KiB is less than a call with a picture.
	lines.Buffer(nil, wire.BatchBodyBytesMax)

	var batch []numberedLine
	size, number := 0, 0
	for lines.Scan() {
		number++
		text := bytes.TrimSpace(lines.Bytes())
		// A line with "export" is a cursor of the export, not an event.
		if len(text) == 0 || bytes.HasPrefix(text, []byte(`{"export":`)) {
			continue
		}

		event, err := wire.ParseEvent(text)
		if err != nil {
			// One bad line must not keep the others out.
			im.refuse(number, err.Error())
			continue
		}

		// A batch that would be too large goes out before the line joins one.
		if len(batch) > 0 && (len(batch) == wire.BatchEventsMax || size+len(text)+1 > wire.BatchBytesMax) {
			if err := im.send(ctx, batch); err != nil {
				return err
			}
			batch, size = nil, 0
		}
		batch = append(batch, numberedLine{number, event.ID, append(bytes.Clone(text), '\n')})
		size += len(text) + 1
	}

	if err := lines.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			return fmt.Errorf("line %d is longer than any event; remove it", number+1)
		}
		return err
	}
	if len(batch) == 0 {
		return nil
	}
	return im.send(ctx, batch)
}

// send sends a batch. If the server rejects it as a whole, it is halved until the line at fault is found.
func (im *importer) send(ctx context.Context, batch []numberedLine) error {
	var plain []byte
	for _, l := range batch {
		plain = append(plain, l.text...)
	}
	answer, err := im.client.Send(ctx, im.key, len(batch), im.encoder.EncodeAll(plain, nil))
	if away := (*wire.Away)(nil); err != nil && !errors.As(err, &away) {
		e := wire.AsError(err)
		switch status := e.Status(); {
		// Any other status is about the key or the server, and no half would fare better.
		case status != 400 && status != 413 && status != 422:
			return err
		case len(batch) == 1:
			im.refuse(batch[0].number, e.Message)
			return nil
		}

		if err := im.send(ctx, batch[:len(batch)/2]); err != nil {
			return err
		}
		return im.send(ctx, batch[len(batch)/2:])
	}
	if err != nil {
		return err
	}

	im.done.Accepted += answer.Accepted
	im.done.Duplicate += answer.Duplicate
	for _, r := range answer.Refused {
		for _, l := range batch {
			if l.id == r.ID {
				im.refuse(l.number, r.Reason)
				break
			}
		}
	}
	return nil
}

func (im *importer) refuse(line int, reason string) {
	im.done.Refused = append(im.done.Refused, refusedLine{line, reason})
}
