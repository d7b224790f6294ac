// Package scores has the commands `promptspool scores ...`: they define what the scores of a
// name are.
package scores

import (
	"fmt"
	"strconv"

	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

// Command is `promptspool scores`: define scores, list and remove definitions.
func Command() *cli.Command {
	return config.Commands("scores", "define scores: their kind, range, categories and direction",
		config.Command("list", "list the definitions of scores",
			list, []cli.Flag{config.ColumnsFlag()}, config.RemoteFlags()),

		config.Command("define NAME",
			"define the scores of a name, or replace their definition: a server then refuses what does not fit; "+
				"`promptspool docs scores` has more",
			define, []cli.Flag{
				config.ChoiceFlag("kind", "", "the `kind` of its values", wire.DefinedKinds...),
				config.TextFlag("min", "", "the least `number`"),
				config.TextFlag("max", "", "the greatest `number`"),
				config.ListFlag("category", "a `text` that it may be; repeatable; without it, any"),
				config.ChoiceFlag("better", "", "the `direction` that is better; without it, neither",
					wire.Directions...),
				config.TextFlag("description", "", "a `text` for people who review: what is judged"),
			}, config.ServerFlags()),

		config.Command("remove NAME", "remove the definition of a score; the scores stay",
			remove, config.ServerFlags()))
}

func list(c *cli.Context) error {
	cl, id, err := config.Read(c).Remote()
	if err != nil {
		return err
	}
	defined, err := cl.ScoreDefinitions(c.Context, id)
	if err != nil {
		return err
	}

	answer := wire.ScoreDefinitionList{Success: true, Items: defined}
	return print.Output(c, answer, func(t *print.Table) {
		t.Head("NAME", "EXPECTED", "BETTER", "DESCRIPTION")
		for _, d := range defined {
			t.Row(d.Name, d.Expected(), d.Better, d.Description)
		}
	})
}

func define(c *cli.Context) error {
	v := config.Read(c)
	bound := func(name string) *float64 {
		if v.Text(name) == "" {
			return nil
		}
		x, err := strconv.ParseFloat(v.Text(name), 64)
		if err != nil {
			v.Reject(name, "is not a number")
		}
		return &x
	}
	d := wire.ScoreDefinition{
		Name:        v.Argument("the name of a score"),
		Kind:        v.OneOf("kind"),
		Min:         bound("min"),
		Max:         bound("max"),
		Categories:  v.List("category"),
		Better:      v.OneOf("better"),
		Description: v.Text("description"),
	}
	v.Required("kind")
	cl, id, err := v.Remote()
	if err != nil {
		return err
	}

	if err := cl.DefineScore(c.Context, id, d); err != nil {
		return err
	}
	fmt.Fprintln(c.App.Writer, print.Printable("The score "+d.Name+" is "+d.Expected()+"."))
	return nil
}

func remove(c *cli.Context) error {
	v := config.Read(c)
	name := v.Argument("the name of a score; `promptspool scores list` shows those that are defined")
	cl, id, err := v.Remote()
	if err != nil {
		return err
	}

	if err := cl.UndefineScore(c.Context, id, name); err != nil {
		return err
	}
	fmt.Fprintln(c.App.Writer, print.Printable("The definition of "+name+" is removed. Its scores stay."))
	return nil
}
