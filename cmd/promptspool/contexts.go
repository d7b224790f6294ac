package main

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"promptspool/api/client"
	"promptspool/api/wire"
	"promptspool/api/words"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

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
