// Package templates has the commands `promptspool templates ...`: they list, render and
// label templates, and publish them from files.
package templates

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/api/client"
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/filter"
	"promptspool/cmd/promptspool/internal/print"
)

// Command is `promptspool templates`: list templates, publish them from files, move their
// labels.
func Command() *cli.Command {
	return config.Commands("templates", "look at prompt templates, publish them from files, move their labels",
		config.Command("list", "list templates", listTemplates, []cli.Flag{
			config.TextFlag("name", "", "only with this `text` in the name"),
			config.TextFlag("label", "", "only with this `label`"),
			config.TextFlag("page", "1", "the `number` of the page"),
			config.TextFlag("limit", "100", "the `number` of templates a page, at most 1000"),
			config.ColumnsFlag(),
		}, config.RemoteFlags()),

		config.Command("show NAME", "show a version of a template",
			showTemplate, versionFlags(), config.RemoteFlags()),

		config.Command("push DIR",
			"publish what changed in a folder of templates; a bad file stops everything before anything is published",
			config.WithArgument("the folder of templates", pushTemplates), []cli.Flag{
				config.TextFlag("message", "", "the `text` of the commit message of what is published"),
				config.ListFlag("label",
					"a `label` that is to point to what the folder holds, of every template in it; repeatable"),
				config.SwitchFlag("dry-run", "show what would be published, as templates diff does, and do nothing"),
				config.SwitchFlag("force", "publish templates that cannot be rendered as well, with warnings"),
			}, config.RemoteFlags()),

		config.Command("pull DIR",
			"write the newest version of every template into a folder; files that say the same stay as they are",
			pullTemplates, config.RemoteFlags()),

		config.Command("diff DIR", "show what `templates push` would change",
			config.WithArgument("the folder of templates", diffTemplates), []cli.Flag{
				config.ListFlag("label", "a `label` to give to what is pushed; repeatable"),
				config.SwitchFlag("exit-code", "exit with 1 if anything would be published, and with 2 on failure"),
			}, config.RemoteFlags()),

		config.Command("compare NAME A B",
			"compare two versions by their calls: `compare NAME A B`, each a version's number or a label; "+
				"`promptspool docs scores` explains the verdicts",
			compareVersions, filter.Flags(), config.RemoteFlags()),

		config.Command("render NAME",
			"print the llm_kwargs of a template for given variables, as an app gets them",
			renderTemplate, versionFlags(), []cli.Flag{
				config.ListFlag("var", "a variable: `name=text`, or name:=JSON for anything but a text; repeatable"),
				config.TextFlag("provider", "", "for this `provider`, instead of the template's own"),
			}, config.ServerFlags()),

		config.Command("label NAME LABEL [VERSION]",
			"point a label to a version: `label NAME LABEL VERSION`; "+
				"with --delete take it away: `label NAME LABEL --delete`",
			labelTemplate, []cli.Flag{
				config.SwitchFlag("delete", "take the label away"),
				config.SwitchFlag("force", "also point to a version that cannot be rendered, with warnings"),
			}, config.ServerFlags()),

		config.Command("archive NAME",
			"take a template out of use; its versions stay, and `templates restore` brings it back",
			withTemplate((*client.Client).Archive,
				"%s is archived. `promptspool templates restore %[1]s` brings it back."),
			config.ServerFlags()),

		config.Command("restore NAME", "bring an archived template back",
			withTemplate((*client.Client).Restore, "%s is in use again."), config.ServerFlags()))
}

// versionFlags choose a version of a template.
func versionFlags() []cli.Flag {
	return []cli.Flag{
		config.TextFlag("version", "", "the `number` of the version, instead of the latest"),
		config.TextFlag("label", "", "the version with this `label`"),
	}
}

func listTemplates(c *cli.Context) error {
	v := config.Read(c)
	q := wire.TemplateListQuery{
		Page:    v.Count("page", wire.PageOffsetMax),
		PerPage: v.Count("limit", wire.PageItemsMax),
		Name:    v.Text("name"),
		Label:   v.Text("label"),
	}
	cl, id, err := v.Remote()
	if err != nil {
		return err
	}

	list, err := cl.List(c.Context, id, q)
	if err != nil {
		return err
	}
	return print.Output(c, list, func(t *print.Table) {
		t.Head(">ID", "NAME", ">LATEST", "LABELS", "TAGS")
		for _, i := range list.Items {
			labels := make([]string, len(i.Labels))
			for j, l := range i.Labels {
				labels[j] = fmt.Sprintf("%s=%d", l.Name, l.Version)
			}
			t.Row(fmt.Sprint(i.ID), i.Name, i.Version, strings.Join(labels, " "), strings.Join(i.Tags, ","))
		}
	})
}

func showTemplate(c *cli.Context) error {
	v := config.Read(c)
	name := v.Argument("the name or id of one template; `promptspool templates list` shows them")
	selector := wire.Selector{Version: v.Count("version", math.MaxInt32), Label: v.Text("label")}
	cl, id, err := v.Remote()
	if err != nil {
		return err
	}

	template, err := cl.Raw(c.Context, id, name, selector)
	if err != nil {
		return err
	}

	err = print.Output(c, template, func(t *print.Table) {
		t.Row("template", template.Name)
		t.Row("id", fmt.Sprint(template.ID))
		t.Row("version", template.Version)
		t.Row("labels", strings.Join(template.Labels, ", "))
		t.Row("tags", strings.Join(template.Tags, ", "))
		if template.CommitMessage != nil {
			t.Row("message", *template.CommitMessage)
		}
	})
	if err != nil || v.AsData() {
		return err
	}
	return print.JSON(c.App.Writer, template.Blueprint)
}

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
