package requests

import (
	"errors"
	"fmt"

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
