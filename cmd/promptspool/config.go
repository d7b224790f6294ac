package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"promptspool/api/ops"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/datafolder"
	"promptspool/cmd/promptspool/internal/print"
)

// configCommand checks and shows configurations.
func configCommand() *cli.Command {
	return config.Commands("config", "check and show configuration files",
		config.Command("check FILE", "report every error in a configuration file",
			config.WithArgument("the configuration file to check", checkConfig)),
		config.Command("print [FILE]", "show all settings and where each comes from: those of a running process, "+
			"or those that one started here with FILE would have",
			printConfig, []cli.Flag{
				config.TextFlag("data", "", "the data `folder` of a running process"),
				config.ColumnsFlag(),
			}, config.OutputFlags()))
}

// checkConfig checks the sections of a file as the start of each role would, as if nothing came before the file.
func checkConfig(c *cli.Context, path string) error {
	file, err := config.ReadFile(c.App, path)
	if err != nil {
		return config.Usagef(c, "%v", err)
	}

	var faults []error
	for _, role := range config.Sections {
		// A role without a section is one that this file does not configure.
		if _, exists := file.Sections[role]; exists {
			faults = append(faults, config.EvaluateFile(newApp, role, path, checkRole(role)))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return config.Usagef(c, "%v", err)
	}
	// Most likely the settings are at the top: a start with it would ignore them all.
	if len(file.Sections) == 0 {
		return fmt.Errorf("%s has neither a section sidecar nor a section server, so it sets nothing", path)
	}

	fmt.Fprintf(c.App.Writer, "%s is good.\n", path)
	return nil
}

// checkRole reads the settings of a role as its start does.
func checkRole(role string) func(*cli.Context) error {
	return func(c *cli.Context) (err error) {
		if role == "server" {
			_, err = serverRoleOf(c)
		} else {
			_, err = sidecarRoleOf(c)
		}
		return err
	}
}

// printConfig shows the settings of a running process, or those of a file.
func printConfig(c *cli.Context) error {
	shown, err := settingsToPrint(c)
	if err != nil {
		return err
	}

	return print.Output(c, shown, func(t *print.Table) {
		t.Head("SETTING", "VALUE", "FROM")
		for _, s := range shown {
			t.Row(s.Setting, s.Value, s.From)
		}
	})
}

func settingsToPrint(c *cli.Context) ([]config.ShownSetting, error) {
	data := config.Read(c).Text("data")
	switch {
	case c.NArg() == 0 && data != "":
		return runningSettings(c, data)
	case c.NArg() == 1:
		return fileSettings(c, c.Args().First())
	}
	return nil, config.Usagef(c, "give one configuration file, or none and --data")
}

// fileSettings returns the settings that processes started here with a configuration file would have.
func fileSettings(c *cli.Context, path string) (shown []config.ShownSetting, err error) {
	file, err := config.ReadFile(c.App, path)
	if err != nil {
		return nil, config.Usagef(c, "%v", err)
	}

	for _, role := range config.Sections {
		if _, exists := file.Sections[role]; !exists {
			continue
		}
		// With the variables of this shell, because a process started here would have
		// them, too.
		args := []string{"promptspool", role, "--config", path}
		err := config.Evaluate(newApp, args, func(c *cli.Context) error {
			for _, s := range config.SettingsOf(c) {
				// As they are nested in a file; two roles have settings of the same name.
				s.Setting = role + "." + s.Setting
				shown = append(shown, s)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return shown, nil
}

// runningSettings returns the settings of the process on a data folder. Each role of `up` has those of `up`.
func runningSettings(c *cli.Context, data string) (shown []config.ShownSetting, err error) {
	folder, err := datafolder.OfRole(data, "server")
	if err != nil {
		return nil, err
	}
	err = ops.Control(c.Context, folder, "GET", "/config", nil, &shown)
	return shown, err
}
