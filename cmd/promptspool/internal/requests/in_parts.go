package requests

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

// reprice brings what is stored up to date, some records in each request.
func reprice(c *cli.Context) error {
	v := config.Read(c)
	sum := wire.Repriced{Success: true, Cursor: v.Text("cursor")}
	cl, id, err := v.Remote()
	if err != nil {
		return err
	}

	err = inParts(c, "records", &sum.Cursor, &sum.Done, func() (int, error) {
		part, err := cl.Reprice(c.Context, id, sum.Cursor)
		if err != nil {
			return 0, err
		}

		sum.Seen += part.Seen
		sum.Changed += part.Changed
		sum.Parts.Add(part.Parts)
		sum.Cursor, sum.Done = part.Cursor, part.Done
		return sum.Seen, nil
	})
	if err != nil {
		return err
	}

	return print.Output(c, sum, func(t *print.Table) {
		t.Row("records", sum.Seen)
		t.Row("changed", sum.Changed)
		t.Row("  tokens", sum.Parts.Tokens)
		t.Row("  price", sum.Parts.Price)
		t.Row("  status", sum.Parts.Status)
		t.Row("  model", sum.Parts.Model)
		t.Row("  text", sum.Parts.Text)
	})
}

// inParts repeats a request that does a part of a long task, until all is done.
//
// A terminal shows the progress; an error says where to resume.
func inParts(c *cli.Context, nouns string, cursor *string, done *bool, part func() (seen int, err error)) error {
	shown := print.NewProgress(c, "Reading", nouns, 0)
	defer shown.End()
	for !*done {
		seen, err := part()
		if err != nil && *cursor != "" {
			return fmt.Errorf("%w\nWhat is done is kept; resume with --cursor %s", message(err), *cursor)
		}
		if err != nil {
			return err
		}
		shown.Set("", int64(seen))
	}
	return nil
}

// message returns an error for people: without the code that wire errors begin with.
func message(err error) error {
	if e := (*wire.Error)(nil); errors.As(err, &e) {
		return errors.New(e.Message)
	}
	return err
}

// scanListMax bounds how many places of secrets one run lists.
const scanListMax = 10_000

func scanRequests(c *cli.Context) error {
	cl, id, err := config.Read(c).Remote()
	if err != nil {
		return err
	}

	sum := wire.Scanned{
		Success: true,
		Kinds:   map[wire.SecretKind]int{},
		Items:   []wire.FoundSecret{},
		Cursor:  config.Read(c).Text("cursor"),
	}
	err = inParts(c, "records", &sum.Cursor, &sum.Done, func() (int, error) {
		step, err := cl.Scan(c.Context, id, wire.ScanQuery{Mask: c.Bool("mask"), Cursor: sum.Cursor})
		if err != nil {
			return 0, err
		}

		addScan(&sum, &step)
		return sum.Seen, nil
	})
	if err != nil {
		return err
	}

	return print.Output(c, sum, func(t *print.Table) { showScan(t, &sum) })
}

// addScan adds what one request found to what those before it did.
func addScan(sum, step *wire.Scanned) {
	sum.Seen += step.Seen
	sum.Found += step.Found
	sum.Masked += step.Masked
	sum.Cursor, sum.Done = step.Cursor, step.Done
	for kind, n := range step.Kinds {
		sum.Kinds[kind] += n
	}
	// Bounded here as well: an archive from before the masking may be full of them.
	sum.Items = append(sum.Items, step.Items[:min(len(step.Items), scanListMax-len(sum.Items))]...)
}

func showScan(t *print.Table, sum *wire.Scanned) {
	t.Row("records", sum.Seen)
	t.Row("with credentials", sum.Found)
	for _, kind := range slices.Sorted(maps.Keys(sum.Kinds)) {
		t.Row("  "+string(kind), sum.Kinds[kind])
	}
	for _, item := range sum.Items {
		t.Row(item.RequestID, string(item.Kind), item.Begins)
	}
	if sum.Found == 0 {
		return
	}

	if sum.Masked == 0 {
		t.Row("Mask them with --mask, and replace the keys: they have been stored in the clear.")
		return
	}
	t.Row("masked", sum.Masked)
	t.Row("Replace these keys nevertheless. The server's files hold their bytes for up to an hour;")
	t.Row("backups and exports made before, and PostgreSQL until VACUUM FULL, hold them still.")
}
