// Package alerts has the commands `promptspool alerts ...`: they keep the rules that watch a project's calls
// as a file.
package alerts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"

	"github.com/urfave/cli/v2"
	"go.yaml.in/yaml/v3"

	"promptspool/api/client"
	"promptspool/api/dashboard/number"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

// Command is `promptspool alerts`: list alerts, and keep their rules in a repository.
func Command() *cli.Command {
	return config.Commands("alerts", "be told when cost, errors or latency of calls rise; rules as a file",
		config.Command("list", "list the alerts, and what their last window has shown",
			list, []cli.Flag{config.ColumnsFlag()}, config.RemoteFlags()),

		config.Command("pull FILE", "write the rules of all alerts to a YAML file",
			pull, config.ServerFlags()),

		config.Command("push FILE",
			"make and change alerts as a YAML file says; `promptspool docs be-told` shows one",
			push, []cli.Flag{
				config.SwitchFlag("prune", "remove the alerts that the file does not have"),
				config.SwitchFlag("dry-run", "only say what would change"),
			}, config.ServerFlags()),

		config.Command("test FILE", "say how often the rules of a file would have fired in the last 30 days",
			test, config.RemoteFlags()))
}

func list(c *cli.Context) error {
	cl, id, err := config.Read(c).Remote()
	if err != nil {
		return err
	}
	answer, err := cl.Alerts(c.Context, id)
	if err != nil {
		return err
	}

	return print.Output(c, answer, func(t *print.Table) {
		t.Head("NAME", "STATE", "BY", ">VALUE", "FIRES", "FILTER")
		for _, a := range answer.Items {
			values := slices.Sorted(maps.Keys(a.State.Values))
			for _, by := range values {
				v := a.State.Values[by]
				state := print.Styled("ok", print.Green)
				if v.Firing != nil {
					state = print.Styled("firing since "+t.Moment(*v.Firing), print.Red)
				}
				t.Row(a.Name, state, by, number.Measured(a.Measure, v.Value), number.Condition(a.AlertRule), a.Filter)
			}
			if len(values) == 0 {
				t.Row(a.Name, print.Styled("ok", print.Green), "", "", number.Condition(a.AlertRule), a.Filter)
			}
		}
	})
}

// rules returns the rules of a server's alerts, by name.
func rules(ctx context.Context, cl *client.Client, id wire.Identity) (map[string]wire.AlertRule, error) {
	answer, err := cl.Alerts(ctx, id)
	all := map[string]wire.AlertRule{}
	for _, a := range answer.Items {
		all[a.Name] = a.AlertRule
	}
	return all, err
}

// read reads the rules of a file: a mapping of names to what the API takes.
func read(path string) (map[string]wire.AlertRule, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var members map[string]map[string]any
	err = yaml.NewDecoder(bytes.NewReader(text)).Decode(&members)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s does not have the names of alerts and, below each, its rule: %w", path, err)
	}

	all, faults := map[string]wire.AlertRule{}, []error{}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		var object wire.Object
		body, err := json.Marshal(members[name])
		if err == nil {
			object, err = wire.ParseObject(body)
		}
		if err == nil {
			all[name], err = wire.DecodeAlertRule(object, name)
		}
		if err != nil {
			faults = append(faults, ofAlert(path, name, err))
		}
	}

	return all, errors.Join(faults...)
}

// ofAlert names the alert that an error is about.
func ofAlert(path, name string, err error) error {
	return fmt.Errorf("%s: alert %s: %s", path, print.Printable(name), wire.AsError(err).Message)
}

// text returns a file of rules.
func text(all map[string]wire.AlertRule) ([]byte, error) {
	members := map[string]map[string]any{}
	for name, r := range all {
		// Its name is the key.
		r.Name = ""
		body, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		var rule map[string]any
		if err := json.Unmarshal(body, &rule); err != nil {
			return nil, err
		}
		members[name] = rule
	}

	var b bytes.Buffer
	to := yaml.NewEncoder(&b)
	to.SetIndent(2)
	err := errors.Join(to.Encode(members), to.Close())
	return b.Bytes(), err
}

// opened returns the file that a command is about, and the server.
func opened(c *cli.Context) (path string, cl *client.Client, id wire.Identity, err error) {
	v := config.Read(c)
	path = v.Argument("the file of alerts, such as alerts.yaml")
	cl, id, err = v.Remote()

	return path, cl, id, err
}

func pull(c *cli.Context) error {
	path, cl, id, err := opened(c)
	if err != nil {
		return err
	}
	all, err := rules(c.Context, cl, id)
	if err != nil {
		return err
	}

	// A file that says the same keeps its layout and its comments, and a faulty one may be one that is being edited.
	there, err := read(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || !reflect.DeepEqual(there, all) {
		content, err := text(all)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintf(c.App.Writer, "%s has %s.\n", print.Printable(path), print.Quantity(len(all), "alert"))
	return nil
}

func push(c *cli.Context) error {
	path, cl, id, err := opened(c)
	if err != nil {
		return err
	}
	wanted, err := read(path)
	if err != nil {
		return err
	}
	there, err := rules(c.Context, cl, id)
	if err != nil {
		return err
	}

	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		old, exists := there[name]
		done := "made"
		if exists {
			done = "changed"
		}
		if !exists || !reflect.DeepEqual(old, wanted[name]) {
			err := step(c, done, name, func() error { return cl.PutAlert(c.Context, id, wanted[name]) })
			if err != nil {
				return ofAlert(path, name, err)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(there)) {
		if _, kept := wanted[name]; kept || !config.Read(c).Given("prune") {
			continue
		}
		if err := step(c, "removed", name, func() error { return cl.RemoveAlert(c.Context, id, name) }); err != nil {
			return err
		}
	}
	return nil
}

// step does one thing, or only says it.
func step(c *cli.Context, done, name string, do func() error) error {
	if config.Read(c).Given("dry-run") {
		fmt.Fprintf(c.App.Writer, "%s would be %s.\n", print.Printable(name), done)
		return nil
	}
	if err := do(); err != nil {
		return err
	}
	fmt.Fprintf(c.App.Writer, "%s is %s.\n", print.Printable(name), done)
	return nil
}

// tested is how often a rule would have fired.
type tested struct {
	Name string `json:"name"`
	wire.AlertTest
}

func test(c *cli.Context) error {
	path, cl, id, err := opened(c)
	if err != nil {
		return err
	}
	wanted, err := read(path)
	if err != nil {
		return err
	}

	all := []tested{}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		answer, err := cl.TestAlert(c.Context, id, wanted[name])
		if err != nil {
			return ofAlert(path, name, err)
		}
		all = append(all, tested{name, answer})
	}
	return print.Output(c, all, func(t *print.Table) {
		t.Head("NAME", ">FIRED", ">WINDOWS", "SINCE", "LAST", "FIRES")
		for _, one := range all {
			last := ""
			if len(one.Firings) > 0 {
				last = t.Moment(one.Firings[0].At)
			}
			t.Row(one.Name, one.Fired, one.Windows, t.Moment(one.Since), last, number.Condition(wanted[one.Name]))
		}
	})
}
