package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/api/ops"
)

// shownSetting is one setting, as it may be shown: a secret is masked.
type shownSetting struct {
	Setting string `json:"setting"`
	Value   string `json:"value"`
	From    string `json:"from"` // --flag, VARIABLE, FILE:LINE or "default"
}

func configCommand() *cli.Command {
	return &cli.Command{
		Name:  "config",
		Usage: "check and show configuration files",
		Subcommands: []*cli.Command{
			{Name: "check", Usage: "say all that is wrong with a configuration file", ArgsUsage: "FILE", Action: checkConfig},
			{
				Name: "print", Usage: "show all settings and where each comes from: those of a running process, or those that one started here with FILE would have", ArgsUsage: "[FILE]",
				Flags: []cli.Flag{stringFlag("data", "", "the data `folder` of a running process, or that of up for both of its roles"), outputFlag()}, Action: printConfig,
			},
			tryCommand(),
		},
	}
}

// checkConfig evaluates both sections, as if nothing came before the file.
func checkConfig(c *cli.Context) error {
	path, err := argument(c, "the configuration file to check")
	if err != nil {
		return err
	}
	file, err := readConfig(path)
	if err != nil {
		return usagef(c, "%v", err)
	}
	var faults []error
	for _, role := range configSections {
		if _, there := file.sections[role]; !there {
			continue
		}
		faults = append(faults, evaluate([]string{"promptspool", role, "--config", path}, map[string]any{fileFirstKey: true}, prepareRole(role)))
	}
	if err := errors.Join(faults...); err != nil {
		return usagef(c, "%v", err)
	}
	if len(file.sections) == 0 {
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
	var shown []shownSetting
	switch {
	case c.NArg() > 1:
		return usagef(c, "give one configuration file, or none and --data")
	case c.NArg() == 1:
		file, err := readConfig(c.Args().First())
		if err != nil {
			return usagef(c, "%v", err)
		}
		for _, role := range configSections {
			if _, there := file.sections[role]; !there {
				continue
			}
			err := evaluate([]string{"promptspool", role, "--config", file.path}, nil, func(c *cli.Context) error {
				for _, s := range settingsOf(c) {
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
		data, err := need(c, "data")
		if err != nil {
			return err
		}
		if shown, err = runningSettings(c, data); err != nil {
			return err
		}
	}
	return output(c, shown, func(t *table) {
		t.row("SETTING", "VALUE", "FROM")
		for _, s := range shown {
			t.row(s.Setting, s.Value, s.From)
		}
	})
}

// runningSettings are those of the process on a data folder; for the folder of `up` those of both of its roles.
func runningSettings(c *cli.Context, data string) (shown []shownSetting, err error) {
	if !isUpFolder(data) {
		err = ops.Control(c.Context, data, "GET", "/config", nil, &shown)
		return shown, err
	}
	for _, role := range upRoles {
		var settings []shownSetting
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

// settingsOf are all settings of the role that c would run, in the order of its flags; redact is last.
func settingsOf(c *cli.Context) []shownSetting {
	var all []shownSetting
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if name == "help" {
			continue
		}
		s := shownSetting{Setting: name, Value: text(c, name), From: "default"}
		if _, many := f.(list); many {
			s.Value = strings.Join(texts(c, name), ", ")
		}
		switch {
		case name == "archive":
			s.Value = showArchive(s.Value)
		case isSecret(name) && s.Value != "":
			s.Value = "[secret]"
		}
		if from := origin(c, name); from != "" && isGiven(c, name) {
			s.From = from
		}
		all = append(all, s)
	}
	rules, _ := c.App.Metadata[rulesKey].([]placedRule)
	for _, r := range rules {
		all = append(all, shownSetting{"redact", r.String(), r.place})
	}
	return all
}

var _ ops.Settings = (*reloader)(nil)

// fixedSettings are those of a process that does not reload any.
type fixedSettings []shownSetting

// Settings shows what is in force, to the control socket.
func (f fixedSettings) Settings() any { return f }

// Settings shows what is in force, to the control socket.
func (r *reloader) Settings() any { return slices.Clip(r.inForce()) }
