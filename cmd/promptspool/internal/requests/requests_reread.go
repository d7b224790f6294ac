package requests

import (
	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

func rereadCommand() *cli.Command {
	flags := config.OfCommand("requests reread",
		config.TextFlag("cursor", "", "resume at the `cursor` that an interrupted run printed"),
	)

	return &cli.Command{
		Name: "reread",
		Usage: "read stored OpenTelemetry spans again with what the server knows of them today; " +
			"can be interrupted and resumed",
		Flags:  append(flags, config.RemoteFlags()...),
		Action: rereadSpans,
	}
}

func rereadSpans(c *cli.Context) error {
	cl, id, err := config.Remote(c)
	if err != nil {
		return err
	}
	defer cl.Close()

	sum := wire.Reread{Success: true, Cursor: config.Read(c).Text("cursor")}
	err = inParts(c, &sum.Cursor, &sum.Done, func() (string, error) {
		part, err := cl.Reread(c.Context, id, sum.Cursor)
		if err != nil {
			return "", err
		}

		sum.Seen += part.Seen
		sum.Changed += part.Changed
		sum.Cursor, sum.Done = part.Cursor, part.Done
		return print.Quantity(sum.Seen, "span") + ", " + humanize.Comma(int64(sum.Changed)) + " changed", nil
	})
	if err != nil {
		return err
	}

	return print.Output(c, sum, func(t *print.Table) {
		t.Row("spans", sum.Seen)
		t.Row("changed", sum.Changed)
	})
}
