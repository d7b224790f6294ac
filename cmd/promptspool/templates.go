package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
)

func templatesCommand() *cli.Command {
	return &cli.Command{
		Name:  "templates",
		Usage: "look at prompt templates",
		Subcommands: []*cli.Command{
			{
				Name: "list", Usage: "list templates",
				Flags: append(remoteFlags(),
					stringFlag("name", "", "only with this in the name"),
					stringFlag("label", "", "only with this label"),
					countFlag("page", 1, "which page"),
					countFlag("limit", 100, "how many a page, at most 1000"),
				),
				Action: listTemplates,
			},
			{
				Name: "show", Usage: "show a version of a template", ArgsUsage: "NAME",
				Flags: append(remoteFlags(),
					countFlag("version", 0, "this version, instead of the latest"),
					stringFlag("label", "", "the version with this label"),
				),
				Action: showTemplate,
			},
		},
	}
}

func listTemplates(c *cli.Context) error {
	cl, id, err := remote(c)
	if err != nil {
		return err
	}
	list, err := cl.List(c.Context, id, wire.TemplateListQuery{Page: c.Int("page"), PerPage: c.Int("limit"), Name: c.String("name"), Label: c.String("label")})
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
	if c.NArg() != 1 {
		return usagef(c, "give the name or id of one template")
	}
	cl, id, err := remote(c)
	if err != nil {
		return err
	}
	template, err := cl.Raw(c.Context, id, c.Args().First(), wire.Selector{Version: c.Int("version"), Label: c.String("label")})
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
