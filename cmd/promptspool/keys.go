package main

import (
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"promptspool/api/ops"
	"promptspool/api/wire"
)

// keysCommand makes, lists and revokes keys of a running server, on the server's machine.
func keysCommand() *cli.Command {
	data := stringFlag("data", "", "the server's data folder")
	return &cli.Command{
		Name:  "keys",
		Usage: "make, list and revoke keys, beside a running server",
		Subcommands: []*cli.Command{
			{
				Name: "create", Usage: "make a key and show it, this once",
				Flags: []cli.Flag{data, outputFlag(),
					stringFlag("account", "default", "whose key it is; the account is made when absent"),
					stringFlag("scope", "app", "app (log and fetch templates) or full (also search, read and publish)"),
					stringFlag("name", "", "what the key is for, for the list"),
				},
				Action: createKey,
			},
			{Name: "list", Usage: "list keys", Flags: []cli.Flag{data, outputFlag()}, Action: listKeys},
			{Name: "revoke", Usage: "revoke a key", ArgsUsage: "KEY_ID", Flags: []cli.Flag{data, outputFlag()}, Action: revokeKey},
		},
	}
}

func createKey(c *cli.Context) error {
	var key ops.CreatedKey
	n := ops.NewKey{Account: text(c, "account"), Name: text(c, "name"), Scope: wire.Scope(text(c, "scope"))}
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
		t.row("ID", "ACCOUNT", "SCOPE", "NAME", "CREATED", "REVOKED")
		for _, k := range list.Items {
			revoked := "-"
			if k.RevokedAt != nil {
				revoked = k.RevokedAt.Format(time.DateTime)
			}
			t.row(k.ID, k.AccountName, k.Scope, k.Name, k.CreatedAt.Format(time.DateTime), revoked)
		}
	})
}

func revokeKey(c *cli.Context) error {
	if c.NArg() != 1 {
		return usagef(c, "give the id of one key; `promptspool keys list` shows them")
	}
	var key wire.Key
	if err := control(c, "DELETE", "/keys/"+c.Args().First(), nil, &key); err != nil {
		return err
	}
	return output(c, key, func(t *table) { t.row(fmt.Sprintf("Key %s of %s is revoked.", key.ID, key.AccountName)) })
}

// control calls the control socket in the folder --data.
func control(c *cli.Context, method, path string, body, answer any) error {
	data, err := need(c, "data")
	if err != nil {
		return err
	}
	return ops.Control(c.Context, data, method, path, body, answer)
}
