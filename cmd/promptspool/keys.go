package main

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"promptspool/api/ops"
	"promptspool/api/wire"
	"promptspool/api/words"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

// keysCommand manages the keys of a running server, on the server's machine.
func keysCommand() *cli.Command {
	common := append(config.ShowingFlags(), config.ServerDataFlag())
	create := []cli.Flag{
		config.TextFlag("project", "default", "the `project` that the key belongs to (created if missing)"),
		config.TextFlag("scope", "app", "`scope`: app (log, score and fetch templates), "+
			"full (everything), or some of log, score, fetch, read, publish and manage, with commas between them"),
		config.SwitchFlag("shared", "create the key even if people who signed up by themselves own the project"),
		config.TextFlag("name", "", "a label for the key: a `name` for the list"),
		config.TextFlag("expires", "",
			"`when` the key ends: after 90d or 12h, or at a date such as 2027-01-31; without it never"),
		config.TextFlag("prefix", "",
			"how the names of the only templates that the key may use `begin`, such as support/; "+
				"not with the rights read and manage"),
	}
	const key = "the id of one key; `promptspool keys list` shows them"
	rotate := []cli.Flag{config.TextFlag("overlap", "24h", "`how long` the old key still works")}

	return config.Commands("keys", "create, list, rotate and revoke keys, beside a running server",
		config.Command("create", "create a key and show it, this once", createKey, create, common),
		config.Command("list", "list keys", listKeys, []cli.Flag{config.ColumnsFlag()}, common),
		config.Command("rotate KEY_ID", "create the successor of a key and show it, this once; "+
			"the old key ends after --overlap", config.WithArgument(key, rotateKey), rotate, common),
		config.Command("revoke KEY_ID", "revoke a key", config.WithArgument(key, revokeKey), common))
}

func createKey(c *cli.Context) error {
	v := config.Read(c)
	scope, err := wire.ParseScope(v.Text("scope"))
	if err != nil {
		return config.WrongValue(c, "scope", v.Text("scope"), "is no scope: give app, full, or some of "+
			strings.Join(wire.ScopeNames, ", ")+" with commas between them"+
			words.DidYouMean(v.Text("scope"), wire.ScopeWords))
	}
	end, err := wire.ParseKeyEnd(v.Text("expires"), time.Now())
	if err != nil {
		return config.WrongValue(c, "expires", v.Text("expires"),
			"is no time in the future: give one such as 90d, 12h or 2027-01-31")
	}
	wanted := ops.NewKey{
		Shared: c.Bool("shared"),
		NewKey: wire.NewKey{
			Account:   v.Text("project"),
			Name:      v.Text("name"),
			Scope:     scope,
			Prefix:    v.Text("prefix"),
			ExpiresAt: end,
		},
	}

	// Through the control socket, which only the folder's owner may open: of a new server
	// there is no key yet to show.
	return askServer(c, "POST", "/keys", wanted, printKey)
}

// printKey prints a key that was just made.
func printKey(t *print.Table, key ops.CreatedKey) {
	t.Row("key", key.Secret)
	t.Row("id", key.ID)
	t.Row("name", cmp.Or(key.Name, "none: --name gives the next key one"))
	t.Row("project", key.AccountName)
	t.Row("scope", key.Scope)
	t.Known("templates", key.Prefix)
	if key.ExpiresAt != nil {
		t.Row("expires", t.Moment(*key.ExpiresAt))
	}
	t.Row("", "It is not shown again: the server keeps a hash only.")
}

func rotateKey(c *cli.Context, id string) error {
	v := config.Read(c)
	rotation := ops.Rotation{ID: id, Overlap: v.Duration("overlap")}
	if err := v.Err(); err != nil {
		return err
	}

	return askServer(c, "POST", "/keys/rotate", rotation, func(t *print.Table, key ops.RotatedKey) {
		printKey(t, key.CreatedKey)
		t.Row("", fmt.Sprintf("It replaces %s, which ends at %s.", key.Old.ID, t.Moment(*key.Old.ExpiresAt)))
	})
}

func listKeys(c *cli.Context) error {
	return askServer(c, "GET", "/keys", nil, func(t *print.Table, list ops.KeyList) {
		now := time.Now()
		t.Head("ID", "PROJECT", "SCOPE", "NAME", "@CREATED", "@LAST USED", "STATE", "@EXPIRES", "TEMPLATES").
			Spare("TEMPLATES", "CREATED", "EXPIRES", "NAME")
		for _, k := range list.Items {
			// Ids, never keys: the server could not show these if it wanted to.
			t.Row(k.ID, k.AccountName, k.Scope, k.Name, t.Moment(k.CreatedAt),
				t.MomentOrNone(k.LastUsedAt), k.State(now), t.MomentOrNone(k.ExpiresAt), k.Prefix)
		}
	})
}

func revokeKey(c *cli.Context, id string) error {
	return askServer(c, "DELETE", "/keys/"+url.PathEscape(id), nil, func(t *print.Table, key wire.Key) {
		t.Row(fmt.Sprintf("Key %s of %s is revoked.", key.ID, key.AccountName))
	})
}

// askServer calls the control socket, and prints the answer.
func askServer[T any](c *cli.Context, method, path string, body any, show func(*print.Table, T)) error {
	var answer T
	if err := control(c, method, path, body, &answer); err != nil {
		return err
	}
	return print.Output(c, ops.InProject(answer), func(t *print.Table) { show(t, answer) })
}

// control calls the control socket of the server in the folder --data.
func control(c *cli.Context, method, path string, body, answer any) error {
	data, err := config.RoleData(c, "server")
	if err != nil {
		return err
	}
	return ops.Control(c.Context, data, method, path, body, answer)
}
