package main

import (
	"errors"
	"fmt"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
)

func deleteCommand() *cli.Command {
	return &cli.Command{
		Name: "delete", Usage: "delete a record, or all with a metadata value, for good; they stay deleted when their events come again", ArgsUsage: "[REQUEST_ID]",
		Flags: append(own("requests delete",
			stringFlag("metadata", "", "all records with this `key=value`, as when a person asks to be forgotten"),
		), append(remoteFlags(), &cli.BoolFlag{Name: "yes", Usage: "do it; without it nothing is deleted", EnvVars: env("requests delete yes")})...),
		Action: deleteRequests,
	}
}

func deleteRequests(c *cli.Context) error {
	var d wire.Deletion
	var where *wire.Filter
	switch pair := text(c, "metadata"); {
	case (pair == "") == (c.NArg() == 0) || c.NArg() > 1:
		return usagef(c, "give one request id, or --metadata key=value")
	case pair == "":
		d.RequestID = c.Args().First()
	default:
		var ok bool
		if d.Key, d.Value, ok = keyAndValue(pair); !ok {
			return wrong(c, "metadata", pair, "is not key=value")
		}
		var f filterBuilder
		f.add("metadata", "is", d.Value, d.Key)
		where = &wire.Filter{Filters: f.filters}
	}
	cl, id, err := remote(c)
	if err != nil {
		return err
	}
	defer cl.Close()
	if !c.Bool("yes") {
		what := "the record " + d.RequestID
		if where != nil {
			page, err := cl.Search(c.Context, id, wire.Search{FilterGroup: where, PerPage: 1})
			if err != nil {
				return err
			}
			what = quantity(page.Total, "record")
			if page.TotalIsLowerBound {
				what = "more than " + what
			}
		}
		return usagef(c, "this would delete %s for good; say --yes to do it", what)
	}
	deleted, err := cl.Delete(c.Context, id, d)
	if err != nil {
		return err
	}
	return output(c, deleted, func(t *table) {
		t.row("records", deleted.Records)
		t.row("events", deleted.Events)
		if !deleted.GoneBy.IsZero() {
			t.row("off the disk", "by "+moment(deleted.GoneBy))
		}
	})
}

// keyAndValue is key and value, of which neither may be missing.
func keyAndValue(pair string) (key, value string, ok bool) {
	for i := range pair {
		if pair[i] == '=' {
			return pair[:i], pair[i+1:], i > 0 && i+1 < len(pair)
		}
	}
	return "", "", false
}

func repriceCommand() *cli.Command {
	return &cli.Command{
		Name: "reprice", Usage: "read what is stored anew and price it by what the server's prices say for its time; can be stopped and gone on with",
		Flags: append(own("requests reprice",
			stringFlag("cursor", "", "go on where an earlier run stopped, at the `cursor` that it told"),
		), remoteFlags()...),
		Action: repriceRequests,
	}
}

func repriceRequests(c *cli.Context) error {
	cl, id, err := remote(c)
	if err != nil {
		return err
	}
	defer cl.Close()
	sum := wire.Repriced{Success: true, Cursor: text(c, "cursor")}
	err = inParts(c, &sum.Cursor, &sum.Done, func() (string, error) {
		part, err := cl.Reprice(c.Context, id, sum.Cursor)
		if err != nil {
			return "", err
		}

		sum.Seen, sum.Changed = sum.Seen+part.Seen, sum.Changed+part.Changed
		sum.Cursor, sum.Done = part.Cursor, part.Done
		return quantity(sum.Seen, "record") + ", " + humanize.Comma(int64(sum.Changed)) + " changed", nil
	})
	if err != nil {
		return err
	}

	return output(c, sum, func(t *table) {
		t.row("records", sum.Seen)
		t.row("changed", sum.Changed)
	})
}

// inParts repeats a call that does a part of a long work, until all is done. A terminal shows how far it is; an
// error tells where to resume.
func inParts(c *cli.Context, cursor *string, done *bool, part func() (progress string, err error)) error {
	live := isTerminal(c.App.ErrWriter)
	for !*done {
		progress, err := part()
		if err != nil && live {
			fmt.Fprintln(c.App.ErrWriter)
		}
		if err != nil && *cursor != "" {
			return fmt.Errorf("%w\nWhat is done is kept; resume with --cursor %s", message(err), *cursor)
		}
		if err != nil {
			return err
		}

		if live {
			fmt.Fprint(c.App.ErrWriter, "\r", progress, " ")
		}
	}
	if live {
		fmt.Fprintln(c.App.ErrWriter)
	}
	return nil
}

// message is an error as people read it, without the code that wire errors begin with.
func message(err error) error {
	if e := (*wire.Error)(nil); errors.As(err, &e) {
		return errors.New(e.Message)
	}
	return err
}
