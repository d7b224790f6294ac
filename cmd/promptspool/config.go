package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"promptspool/api/client"
	"promptspool/api/ops"
	"promptspool/api/wire"
	"promptspool/api/words"
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

// loginCommand keeps a server's address and a key for it.
func loginCommand() *cli.Command {
	server := slices.DeleteFunc(config.ServerFlags(), func(f cli.Flag) bool {
		return slices.Contains([]string{"url", "context"}, f.Names()[0])
	})
	return config.Command("login URL", "keep the URL of a server and a key for it, which commands then use",
		login, []cli.Flag{
			config.TextFlag("name", "", "the `name` of the context (default: the host and port of the URL)"),
		}, server)
}

func login(c *cli.Context) error {
	v := config.Read(c)
	address := v.Argument("the URL of a server, such as https://prompts.example.com")
	key, trust := v.Text("key"), v.Trust("url")
	if err := v.Err(); err != nil {
		return err
	}
	cl, err := client.New(client.Config{URL: address, Version: c.App.Version, TLS: trust})
	if err != nil {
		return config.Usagef(c, "%v", err)
	}
	defer cl.Close()
	if key == "" {
		key, err = askKey(c)
		if err != nil {
			return err
		}
	}
	if key == "" {
		return config.Usagef(c, "the key is missing: type it, or give it by --key or PROMPTSPOOL_KEY")
	}

	// A key that the server refuses would fail each command later.
	if _, err := cl.Verdict(c.Context, wire.Secret(key)); err != nil {
		return err
	}

	all, err := config.ReadContexts()
	if err != nil {
		return err
	}
	_, host, _ := strings.Cut(address, "://")
	all.Current = cmp.Or(v.Text("name"), strings.TrimRight(host, "/"))
	all.Named[all.Current] = config.Context{URL: address, Key: key}
	if err := all.Save(); err != nil {
		return err
	}

	fmt.Fprintf(c.App.Writer, "Commands use %s from now on, as context %s.\n", address, all.Current)
	return nil
}

// askKey reads a key from stdin, which does not show it if a person types it.
func askKey(c *cli.Context) (string, error) {
	stdin := int(os.Stdin.Fd())
	if !term.IsTerminal(stdin) {
		line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		return strings.TrimSpace(line), nil
	}

	fmt.Fprint(c.App.ErrWriter, "Key: ")
	typed, err := term.ReadPassword(stdin)
	fmt.Fprintln(c.App.ErrWriter)
	return strings.TrimSpace(string(typed)), err
}

// contextsCommand manages what login keeps.
func contextsCommand() *cli.Command {
	// change is a command about one context.
	change := func(name, usage string, do func(all *config.Contexts, name string)) *cli.Command {
		const wanted = "the name of one context; `promptspool contexts list` shows them"
		return config.Command(name+" NAME", usage, config.WithArgument(wanted, func(c *cli.Context, name string) error {
			all, err := config.ReadContexts()
			if err != nil {
				return err
			}
			if _, known := all.Named[name]; !known {
				return config.Usagef(c, "there is no context %q%s", name, words.DidYouMean(name, all.Names()))
			}
			do(&all, name)
			return all.Save()
		}))
	}

	return config.Commands("contexts", "list, choose and forget the servers that login keeps",
		config.Command("list", "list contexts", listContexts, config.OutputFlags(), []cli.Flag{config.ColumnsFlag()}),
		change("use", "let commands use a context", func(all *config.Contexts, name string) { all.Current = name }),
		change("remove", "forget a context, with its key", func(all *config.Contexts, name string) {
			if delete(all.Named, name); all.Current == name {
				all.Current = ""
			}
		}))
}

func listContexts(c *cli.Context) error {
	all, err := config.ReadContexts()
	if err != nil {
		return err
	}

	list := []listedContext{}
	for _, name := range all.Names() {
		list = append(list, listedContext{name, all.Named[name].URL, name == all.Current})
	}
	return print.Output(c, map[string][]listedContext{"items": list}, func(t *print.Table) {
		if len(list) == 0 {
			t.Row("None. `promptspool login URL` keeps one.")
			return
		}
		t.Head("NAME", "URL", "CURRENT")
		for _, i := range list {
			t.Row(i.Name, i.URL, map[bool]string{true: "yes"}[i.Current])
		}
	})
}

// listedContext is a context without its key.
type listedContext struct {
	Name    string `json:"name"`
	URL     string `json:"url"`
	Current bool   `json:"current"`
}
