package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"promptspool/api/ops"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/datafolder"
	"promptspool/cmd/promptspool/internal/print"
)

func configCommand() *cli.Command {
	return &cli.Command{
		Name:  "config",
		Usage: "check and show configuration files",
		Subcommands: []*cli.Command{
			{Name: "check", Usage: "say all that is wrong with a configuration file", ArgsUsage: "FILE", Action: checkConfig},
			{
				Name: "print", Usage: "show all settings and where each comes from: those of a running process, or those that one started here with FILE would have", ArgsUsage: "[FILE]",
				Flags: []cli.Flag{config.TextFlag("data", "", "the data `folder` of a running process, or that of up for both of its roles"), config.OutputFlag()}, Action: printConfig,
			},
			tryCommand(),
		},
	}
}

// checkConfig evaluates both sections, as if nothing came before the file.
func checkConfig(c *cli.Context) error {
	path, err := config.Argument(c, "the configuration file to check")
	if err != nil {
		return err
	}
	file, err := config.ReadFile(c.App, path)
	if err != nil {
		return config.Usagef(c, "%v", err)
	}
	var faults []error
	for _, role := range config.Sections {
		if _, there := file.Sections[role]; !there {
			continue
		}
		faults = append(faults, config.EvaluateFile(newApp, role, path, prepareRole(role)))
	}
	if err := errors.Join(faults...); err != nil {
		return config.Usagef(c, "%v", err)
	}
	if len(file.Sections) == 0 {
		return fmt.Errorf("%s has neither a section sidecar nor a section server, so it sets nothing", path)
	}
	fmt.Fprintf(c.App.Writer, "%s is good.\n", path)
	return nil
}

// prepareRole checks the settings of a role as its start would.
func prepareRole(role string) func(*cli.Context) error {
	return func(c *cli.Context) (err error) {
		if role == "server" {
			_, err = serverRoleOf(c)
		} else {
			_, err = sidecarRoleOf(c)
		}
		return err
	}
}

func printConfig(c *cli.Context) error {
	var shown []config.ShownSetting
	switch {
	case c.NArg() > 1:
		return config.Usagef(c, "give one configuration file, or none and --data")
	case c.NArg() == 1:
		file, err := config.ReadFile(c.App, c.Args().First())
		if err != nil {
			return config.Usagef(c, "%v", err)
		}
		for _, role := range config.Sections {
			if _, there := file.Sections[role]; !there {
				continue
			}
			err := config.Evaluate(newApp, []string{"promptspool", role, "--config", file.Path}, func(c *cli.Context) error {
				for _, s := range config.SettingsOf(c) {
					s.Setting = role + "." + s.Setting
					shown = append(shown, s)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
	default:
		r := config.Read(c)
		data := r.Required("data")
		if err := r.Err(); err != nil {
			return err
		}
		var err error
		if shown, err = runningSettings(c, data); err != nil {
			return err
		}
	}
	return print.Output(c, shown, func(t *print.Table) {
		t.Row("SETTING", "VALUE", "FROM")
		for _, s := range shown {
			t.Row(s.Setting, s.Value, s.From)
		}
	})
}

// runningSettings are those of the process on a data folder; for the folder of `up` those of both of its roles.
func runningSettings(c *cli.Context, data string) (shown []config.ShownSetting, err error) {
	if !datafolder.IsUp(data) {
		err = ops.Control(c.Context, data, "GET", "/config", nil, &shown)
		return shown, err
	}
	for _, role := range datafolder.UpRoles {
		var settings []config.ShownSetting
		if err := ops.Control(c.Context, filepath.Join(data, role), "GET", "/config", nil, &settings); err != nil {
			return nil, err
		}
		for _, s := range settings {
			s.Setting = role + "." + s.Setting
			shown = append(shown, s)
		}
	}
	return shown, nil
}
