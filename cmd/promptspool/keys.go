package main

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/api/ops"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

// keysCommand manages the keys of a running server, on the server's machine.
func keysCommand() *cli.Command {
	common := append(config.ShowingFlags(), config.ServerDataFlag())
	create := config.OfCommand("keys create",
		config.TextFlag("account", "default", "the `account` that the key belongs to (created if missing)"),
		config.TextFlag("scope", "app", "`scope`: app (log, score and fetch templates), "+
			"full (everything), or some of log, score, fetch, read, publish and manage, with commas between them"),
		config.SwitchFlag("shared", "make the key even if people who signed up by themselves own the account"),
		config.TextFlag("name", "", "a label for the key: a `name` for the list"),
	)

	return &cli.Command{
		Name:  "keys",
		Usage: "make, list and revoke keys, beside a running server",
		Subcommands: []*cli.Command{
			{
				Name:   "create",
				Usage:  "make a key and show it, this once",
				Flags:  append(create, common...),
				Action: createKey,
			},
			{
				Name:   "list",
				Usage:  "list keys",
				Flags:  common,
				Action: listKeys,
			},
			{
				Name:      "revoke",
				Usage:     "revoke a key",
				ArgsUsage: "KEY_ID",
				Flags:     common,
				Action:    revokeKey,
			},
		},
	}
}

func createKey(c *cli.Context) error {
	v := config.Read(c)
	scope, err := wire.ParseScope(v.Text("scope"))
	if err != nil {
		return config.WrongValue(c, "scope", v.Text("scope"), "is no scope: give app, full, or some of "+
			strings.Join(wire.ScopeNames, ", ")+" with commas between them")
	}
	wanted := ops.NewKey{
		Account: v.Text("account"),
		Name:    v.Text("name"),
		Scope:   scope,
		Shared:  c.Bool("shared"),
	}

	// Through the control socket, which only the folder's owner may open: of a new server
	// there is no key yet to show.
	var key ops.CreatedKey
	if err := control(c, "POST", "/keys", wanted, &key); err != nil {
		return err
	}

	return print.Output(c, key, func(t *print.Table) {
		t.Row("key", key.Secret)
		t.Row("id", key.ID)
		t.Row("account", key.AccountName)
		t.Row("scope", key.Scope)
		t.Row("", "It is not shown again: the server keeps a hash only.")
	})
}

func listKeys(c *cli.Context) error {
	var list ops.KeyList
	if err := control(c, "GET", "/keys", nil, &list); err != nil {
		return err
	}

	return print.Output(c, list, func(t *print.Table) {
		t.Row("ID", "ACCOUNT", "SCOPE", "NAME", "CREATED", "LAST USED", "REVOKED")
		for _, k := range list.Items {
			// Ids, never keys: the server could not show these if it wanted to.
			t.Row(k.ID, k.AccountName, k.Scope, k.Name, t.Moment(k.CreatedAt),
				t.MomentOrNone(k.LastUsedAt), t.MomentOrNone(k.RevokedAt))
		}
	})
}

func revokeKey(c *cli.Context) error {
	id, err := config.Argument(c, "the id of one key; `promptspool keys list` shows them")
	if err != nil {
		return err
	}
	var key wire.Key
	if err := control(c, "DELETE", "/keys/"+url.PathEscape(id), nil, &key); err != nil {
		return err
	}

	return print.Output(c, key, func(t *print.Table) {
		t.Row(fmt.Sprintf("Key %s of %s is revoked.", key.ID, key.AccountName))
	})
}

// control calls the control socket of the server in the folder --data.
func control(c *cli.Context, method, path string, body, answer any) error {
	data, err := config.RoleData(c, "server")
	if err != nil {
		return err
	}
	return ops.Control(c.Context, data, method, path, body, answer)
}
