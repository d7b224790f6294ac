package main

import (
	"fmt"
	"net/url"

	"github.com/urfave/cli/v2"

	"promptspool/api/ops"
	"promptspool/api/wire"
)

// keysCommand makes, lists and revokes keys of a running server, on the server's machine.
func keysCommand() *cli.Command {
	data := serverDataFlag()
	return &cli.Command{
		Name:  "keys",
		Usage: "make, list and revoke keys, beside a running server",
		Subcommands: []*cli.Command{
			{
				Name: "create", Usage: "make a key and show it, this once",
				Flags: append(own("keys create",
					stringFlag("account", "default", "the `account` whose key it is; made when absent"),
					stringFlag("scope", "app", "what it may do, the `scope`: app (log and fetch templates) or full (also search, read and publish)"),
					boolFlag("keys create", "shared", "make the key even if people who signed up by themselves own the account"),
					stringFlag("name", "", "what the key is for, a `name` for the list"),
				), data, outputFlag()),
				Action: createKey,
			},
			{Name: "list", Usage: "list keys", Flags: []cli.Flag{data, outputFlag()}, Action: listKeys},
			{Name: "revoke", Usage: "revoke a key", ArgsUsage: "KEY_ID", Flags: []cli.Flag{data, outputFlag()}, Action: revokeKey},
		},
	}
}

func createKey(c *cli.Context) error {
	var key ops.CreatedKey
	n := ops.NewKey{Account: text(c, "account"), Name: text(c, "name"), Scope: wire.Scope(text(c, "scope")), Shared: c.Bool("shared")}
	if err := control(c, "POST", "/keys", n, &key); err != nil {
		return err
	}
	return output(c, key, func(t *table) {
		t.row("key", key.Secret)
		t.row("id", key.ID)
		t.row("account", key.AccountName)
		t.row("scope", key.Scope)
		t.row("", "It is not shown again: the server keeps a hash only.")
	})
}

func listKeys(c *cli.Context) error {
	var list ops.KeyList
	if err := control(c, "GET", "/keys", nil, &list); err != nil {
		return err
	}
	return output(c, list, func(t *table) {
		t.row("ID", "ACCOUNT", "SCOPE", "NAME", "CREATED", "LAST USED", "REVOKED")
		for _, k := range list.Items {
			t.row(k.ID, k.AccountName, k.Scope, k.Name, moment(k.CreatedAt), momentOrNone(k.LastUsedAt), momentOrNone(k.RevokedAt))
		}
	})
}

func revokeKey(c *cli.Context) error {
	id, err := argument(c, "the id of one key; `promptspool keys list` shows them")
	if err != nil {
		return err
	}
	var key wire.Key
	if err := control(c, "DELETE", "/keys/"+url.PathEscape(id), nil, &key); err != nil {
		return err
	}
	return output(c, key, func(t *table) { t.row(fmt.Sprintf("Key %s of %s is revoked.", key.ID, key.AccountName)) })
}

// control calls the control socket of the server in the folder --data.
func control(c *cli.Context, method, path string, body, answer any) error {
	data, err := roleData(c, "server")
	if err != nil {
		return err
	}
	return ops.Control(c.Context, data, method, path, body, answer)
}
