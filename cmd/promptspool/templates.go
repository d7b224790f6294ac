package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
)

func templatesCommand() *cli.Command {
	return &cli.Command{
		Name:  "templates",
		Usage: "look at prompt templates, publish them from files, move their labels",
		Subcommands: []*cli.Command{
			{
				Name: "list", Usage: "list templates",
				Flags: append(own("templates list",
					stringFlag("name", "", "only with this `text` in the name"),
					stringFlag("label", "", "only with this `label`"),
					stringFlag("page", "1", "the `number` of the page"),
					stringFlag("limit", "100", "the `number` of templates a page, at most 1000"),
				), remoteFlags()...),
				Action: listTemplates,
			},
			{
				Name: "show", Usage: "show a version of a template", ArgsUsage: "NAME",
				Flags: append(own("templates show",
					stringFlag("version", "", "the `number` of the version, instead of the latest"),
					stringFlag("label", "", "the version with this `label`"),
				), remoteFlags()...),
				Action: showTemplate,
			},
			pushCommand(), pullCommand(), diffCommand(),
			renderCommand(), labelCommand(), archiveCommand(), restoreCommand(),
			backtestCommand(),
		},
	}
}

func listTemplates(c *cli.Context) error {
	v := values{c: c}
	q := wire.TemplateListQuery{
		Page:    v.count("page", wire.PageOffsetMax),
		PerPage: v.count("limit", wire.PageItemsMax),
		Name:    v.text("name"),
		Label:   v.text("label"),
	}
	cl, id := v.remote()
	if err := v.err(); err != nil {
		return err
	}
	defer cl.Close()

	list, err := cl.List(c.Context, id, q)
	if err != nil {
		return err
	}
	return output(c, list, func(t *table) {
		t.row("ID", "NAME", "LATEST", "LABELS", "TAGS")
		for _, i := range list.Items {
			labels := make([]string, len(i.Labels))
			for j, l := range i.Labels {
				labels[j] = fmt.Sprintf("%s=%d", l.Name, l.Version)
			}
			t.row(i.ID, i.Name, i.Version, strings.Join(labels, " "), strings.Join(i.Tags, ","))
		}
	})
}

func showTemplate(c *cli.Context) error {
	v := values{c: c}
	name := v.argument("the name or id of one template; `promptspool templates list` shows them")
	selector := wire.Selector{Version: v.count("version", math.MaxInt32), Label: v.text("label")}
	cl, id := v.remote()
	if err := v.err(); err != nil {
		return err
	}
	defer cl.Close()

	template, err := cl.Raw(c.Context, id, name, selector)
	if err != nil {
		return err
	}
	if text(c, "output") == "json" {
		return printJSON(c.App.Writer, template)
	}
	err = output(c, template, func(t *table) {
		t.row("template", template.Name)
		t.row("id", template.ID)
		t.row("version", template.Version)
		t.row("labels", strings.Join(template.Labels, ", "))
		t.row("tags", strings.Join(template.Tags, ", "))
		if template.CommitMessage != nil {
			t.row("message", *template.CommitMessage)
		}
	})
	if err != nil {
		return err
	}
	return printJSON(c.App.Writer, template.Blueprint)
}
