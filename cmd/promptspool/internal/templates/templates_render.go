package templates

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

func renderTemplate(c *cli.Context) error {
	v := config.Read(c)
	name := v.Argument("the name or id of one template; `promptspool templates list` shows them")
	fetch := wire.TemplateFetch{
		Selector:  wire.Selector{Version: v.Count("version", math.MaxInt32), Label: v.Text("label")},
		Provider:  v.Text("provider"),
		Variables: map[string]json.RawMessage{},
	}
	for _, pair := range v.List("var") {
		variable, value, err := parseVariable(c, pair)
		v.Note(err)
		fetch.Variables[variable] = value
	}
	cl, id, err := v.Remote()
	if err != nil {
		return err
	}

	t, err := cl.Fetch(c.Context, id, name, fetch)
	if err != nil {
		return err
	}
	if t.Warning != nil {
		fmt.Fprintln(c.App.ErrWriter, "warning:", print.Printable(*t.Warning))
	}

	if len(t.LLMKwargs) == 0 || string(t.LLMKwargs) == "null" {
		if t.Warning != nil {
			return fmt.Errorf("version %d of %s gives no llm_kwargs", t.Version, name)
		}
		return fmt.Errorf("version %d of %s names no provider; give --provider", t.Version, name)
	}
	return print.JSON(c.App.Writer, t.LLMKwargs)
}

// parseVariable reads name=text or name:=JSON.
func parseVariable(c *cli.Context, pair string) (name string, value json.RawMessage, err error) {
	name, given, ok := strings.Cut(pair, "=")
	if !ok || name == "" || name == ":" {
		return "", nil, config.WrongValue(c, "var", pair, "is not name=text, nor name:=JSON")
	}

	// As HTTPie and others write it: = is text, := is JSON.
	name, isJSON := strings.CutSuffix(name, ":")
	if !isJSON {
		return name, jsonscan.AppendString(nil, given), nil
	}
	if !json.Valid([]byte(given)) {
		return "", nil, config.WrongValue(c, "var", pair,
			"has no JSON after :=; put a text in quotes there, or use = instead of :=")
	}
	return name, json.RawMessage(given), nil
}
