package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

func renderCommand() *cli.Command {
	return &cli.Command{
		Name: "render", Usage: "print the llm_kwargs of a template for given variables, as an app gets them", ArgsUsage: "NAME",
		Flags: append(own("templates render",
			listFlag("var", "a variable: `name=text`, or name:=JSON for anything but a text; repeatable"),
			stringFlag("version", "", "the `number` of the version, instead of the latest"),
			stringFlag("label", "", "the version with this `label`"),
			stringFlag("provider", "", "for this `provider`, instead of the template's own"),
		), serverFlags()...),
		Action: renderTemplate,
	}
}

func renderTemplate(c *cli.Context) error {
	v := values{c: c}
	name := v.argument("the name or id of one template; `promptspool templates list` shows them")
	f := wire.TemplateFetch{
		Selector:  wire.Selector{Version: v.count("version", math.MaxInt32), Label: v.text("label")},
		Provider:  v.text("provider"),
		Variables: map[string]json.RawMessage{},
	}
	for _, pair := range texts(c, "var") {
		variable, value, err := variableOf(c, pair)
		v.note(err)
		f.Variables[variable] = value
	}
	cl, id := v.remote()
	if err := v.err(); err != nil {
		return err
	}
	defer cl.Close()

	t, err := cl.Fetch(c.Context, id, name, f)
	if err != nil {
		return err
	}
	if t.Warning != nil {
		fmt.Fprintln(c.App.ErrWriter, "warning:", printable(*t.Warning))
	}
	if len(t.LLMKwargs) == 0 || string(t.LLMKwargs) == "null" {
		if t.Warning != nil {
			return fmt.Errorf("version %d of %s gives no llm_kwargs", t.Version, name)
		}
		return fmt.Errorf("version %d of %s names no provider; give --provider", t.Version, name)
	}
	return printJSON(c.App.Writer, t.LLMKwargs)
}

// variableOf reads name=text or name:=JSON.
func variableOf(c *cli.Context, pair string) (name string, value json.RawMessage, err error) {
	name, given, ok := strings.Cut(pair, "=")
	if !ok || name == "" || name == ":" {
		return "", nil, wrong(c, "var", pair, "is not name=text, nor name:=JSON")
	}
	name, isJSON := strings.CutSuffix(name, ":")
	if !isJSON {
		return name, jsonscan.AppendString(nil, given), nil
	}
	if !json.Valid([]byte(given)) {
		return "", nil, wrong(c, "var", pair, "holds no JSON behind :=; a text needs quotes there, or = in the place of :=")
	}
	return name, json.RawMessage(given), nil
}
