package main

import (
	"fmt"

	"github.com/urfave/cli/v2"
	"go.yaml.in/yaml/v3"

	"promptspool/api/ops"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

// projectsCommand manages the projects of a running server, on the server's machine.
func projectsCommand() *cli.Command {
	common := append(config.ShowingFlags(), config.ServerDataFlag())
	return config.Commands("projects",
		"list, create, rename and archive projects, or create what a file lists, beside a running server",
		config.Command("list", "list projects", listProjects, []cli.Flag{config.ColumnsFlag()}, common),
		config.Command("create NAME", "create a project",
			config.WithArgument("the name of the new project", createProject), common),
		config.Command("rename NAME NEW_NAME", "rename a project; its records, people and keys stay",
			renameProject, common),
		config.Command("archive NAME",
			"close a project: nobody opens it, and its keys are refused; nothing is deleted",
			config.WithArgument("the name of one project; `promptspool projects list` shows them", archiveProject),
			[]cli.Flag{
				config.SwitchFlag("undo", "take it back: people open the project again, and its keys work"),
			}, common),
		config.Command("apply FILE",
			"create the projects, roles and keys that a file lists and that are missing",
			config.WithArgument("a file of projects; - is standard input", applyProjects),
			[]cli.Flag{config.SwitchFlag("dry-run", "say what would be done, and do nothing")}, common))
}

func createProject(c *cli.Context, name string) error {
	return changeProject(c, "/projects", ops.ProjectRequest{Name: name}, "is there.")
}

func archiveProject(c *cli.Context, name string) error {
	r := ops.ProjectRequest{Name: name, Undo: c.Bool("undo")}
	says := "is archived."
	if r.Undo {
		says = "is open again."
	}
	return changeProject(c, "/projects/archive", r, says)
}

func listProjects(c *cli.Context) error {
	return askServer(c, "GET", "/projects", nil, func(t *print.Table, list ops.ProjectList) {
		t.Head("PROJECT", ">PEOPLE", ">KEYS", "@CREATED", "@ARCHIVED")
		for _, p := range list.Items {
			t.Row(p.Name, p.People, p.Keys, t.Moment(p.CreatedAt), t.MomentOrNone(p.ArchivedAt))
		}
	})
}

func renameProject(c *cli.Context) error {
	if c.NArg() != 2 {
		return config.Usagef(c, "give the name of a project and its new name")
	}
	r := ops.ProjectRequest{Name: c.Args().Get(0), To: c.Args().Get(1)}
	return changeProject(c, "/projects/rename", r, "is the name of "+r.Name+" now.")
}

// changeProject makes a change, and says what a project is now.
func changeProject(c *cli.Context, path string, r ops.ProjectRequest, says string) error {
	return askServer(c, "POST", path, r, func(t *print.Table, a wire.Account) { t.Row(a.Name + " " + says) })
}

func applyProjects(c *cli.Context, path string) error {
	file, _, err := config.FileOrStdin(path)
	if err != nil {
		return err
	}
	defer file.Close()

	// A misspelled field must not be skipped: it may be a role.
	read := ops.Applying{Dry: c.Bool("dry-run")}
	decoder := yaml.NewDecoder(file)
	decoder.KnownFields(true)
	if err := decoder.Decode(&read.Wanted); err != nil {
		return fmt.Errorf("%s is no file of projects: %w; `promptspool docs projects` has an example", path, err)
	}
	return askServer(c, "POST", "/projects/apply", read, func(t *print.Table, applied ops.Applied) {
		for _, change := range applied.Changes {
			t.Row(change)
		}
		if len(applied.Changes) == 0 {
			t.Row("Nothing to change.")
		}
	})
}
