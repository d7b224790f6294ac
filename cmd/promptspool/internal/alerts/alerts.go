// Package alerts has the commands `promptspool alerts ...`: they keep the rules that watch a project's calls
// as a file.
package alerts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

	return print.Output(c, wire.AlertList{Success: true, Items: answer}, func(t *print.Table) {
		t.Head("NAME", "STATE", "BY", ">VALUE", "FIRES", "FILTER")
		for _, a := range answer {
			values := slices.Sorted(maps.Keys(a.State.Values))
			if len(values) == 0 {
				values = []string{""}
			}
			for _, by := range values {
				v := a.State.Values[by]
				state := print.Styled("ok", print.Green)
				if v.Firing != nil {
					state = print.Styled("firing since "+t.Moment(*v.Firing), print.Red)
				}
				t.Row(a.Name, state, by, number.Measured(a.Measure, v.Value), number.Condition(a.AlertRule), a.Filter)
			}
		}
	})
}

// rules returns the rules of a server's alerts, by name.
func rules(ctx context.Context, cl *client.Client, id wire.Identity) (map[string]wire.AlertRule, error) {
	answer, err := cl.Alerts(ctx, id)
	all := map[string]wire.AlertRule{}
	for _, a := range answer {
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
	if err := yaml.Unmarshal(text, &members); err != nil {
		return nil, fmt.Errorf("%s does not have the names of alerts and, below each, its rule: %w", path, err)
	}

	all, faults := map[string]wire.AlertRule{}, []error{}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		body, err := json.Marshal(members[name])
		// A setting that is misspelled would have its default.
		strict := json.NewDecoder(bytes.NewReader(body))
		strict.DisallowUnknownFields()
		if err == nil {
			err = strict.Decode(new(wire.AlertRule))
		}
		if err == nil {
			object, _ := wire.ParseObject(body)
			all[name], err = wire.DecodeNamed[wire.AlertRule](object, name)
		}
		if err != nil {
			faults = append(faults, ofAlert(path, name, err))
		}
	}

	return all, errors.Join(faults...)
}

// ofAlert names the alert that an error is about.
func ofAlert(path, name string, err error) error {
	return fmt.Errorf("%s: alert %s: %v", path, print.Printable(name), err)
}

// text returns a file of rules.
func text(all map[string]wire.AlertRule) ([]byte, error) {
	named := map[string]wire.AlertRule{}
	for name, r := range all {
		// Its name is the key.
		r.Name = ""
		named[name] = r
	}
	body, err := json.Marshal(named)
	if err != nil {
		return nil, err
	}

	// JSON is YAML.
	var members map[string]any
	if err := yaml.Unmarshal(body, &members); err != nil {
		return nil, err
	}
	return yaml.Marshal(members)
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
		if err == nil {
			err = os.WriteFile(path, content, 0o644)
		}
		if err != nil {
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

	prune, dry := config.Read(c).Given("prune"), config.Read(c).Given("dry-run")
	names := slices.AppendSeq(slices.Collect(maps.Keys(there)), maps.Keys(wanted))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		was, exists := there[name]
		now, stays := wanted[name]
		change := func() error { return cl.PutAlert(c.Context, id, now) }
		done := "made"
		switch {
		case !stays && !prune, exists && reflect.DeepEqual(was, now):
			continue
		case !stays:
			change = func() error { return cl.RemoveAlert(c.Context, id, name) }
			done = "removed"
		case exists:
			done = "changed"
		}

		says := "is"
		if dry {
			says = "would be"
		} else if err := change(); err != nil {
			return ofAlert(path, name, err)
		}
		fmt.Fprintf(c.App.Writer, "%s %s %s.\n", print.Printable(name), says, done)
	}
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
