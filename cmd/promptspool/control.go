package main

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"go.yaml.in/yaml/v3"

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

// peopleCommand manages who signs in at a running server, on the server's machine.
func peopleCommand() *cli.Command {
	both := append(config.ShowingFlags(), config.ServerDataFlag())
	list := []cli.Flag{
		config.ColumnsFlag(),
		config.TextFlag("project", "", "list only the people of this `project`"),
	}
	invite := []cli.Flag{
		config.TextFlag("project", "default", "the `project` to join; created if it does not exist"),
		config.ChoiceFlag("role", string(wire.RoleViewer), "the `role` (a viewer can read, a reviewer can also "+
			"score, an editor also edit templates and move labels, an owner also manage people and keys)",
			string(wire.RoleViewer), string(wire.RoleReviewer), string(wire.RoleEditor), string(wire.RoleOwner)),
	}
	const person = "the email of one person; `promptspool people list` shows them"
	disabling := func(disabled bool) cli.ActionFunc {
		return config.WithArgument(person, func(c *cli.Context, email string) error {
			return setDisabled(c, email, disabled)
		})
	}

	return config.Commands("people",
		"list and invite people, reset passwords and disable sign-in, beside a running server",
		config.Command("list", "list who can sign in", listPeople, list, both),
		config.Command("invite", "print a link with which one person signs up", invitePerson, invite, both),
		config.Command("reset-password EMAIL", "print a link with which a person chooses a new password",
			config.WithArgument(person, resetPassword), both),
		config.Command("disable EMAIL", "sign a person out and refuse their sign-in", disabling(true), both),
		config.Command("enable EMAIL", "let a disabled person sign in again", disabling(false), both))
}

func listPeople(c *cli.Context) error {
	query := url.Values{"project": {config.Read(c).Text("project")}}
	return askServer(c, "GET", "/people?"+query.Encode(), nil, func(t *print.Table, people ops.PeopleList) {
		t.Head("EMAIL", "PROJECT", "ROLE", "@SINCE", "@DISABLED")
		for _, u := range byPerson(people.Items) {
			t.Row(u.Email, u.AccountName, u.Role, t.Moment(u.CreatedAt), t.MomentOrNone(u.DisabledAt))
		}
	})
}

// byPerson returns each person once, with all their projects, and their role in each, in one order.
func byPerson(users []wire.User) (people []wire.User) {
	for _, u := range users {
		i := slices.IndexFunc(people, func(p wire.User) bool { return p.Email == u.Email })
		if i < 0 {
			people = append(people, u)
			continue
		}
		people[i].AccountName += "," + u.AccountName
		people[i].Role += "," + u.Role
	}
	return people
}

func invitePerson(c *cli.Context) error {
	var made ops.CreatedInvite
	r := config.Read(c)
	n := ops.NewInvite{Account: r.Text("project"), Role: wire.Role(r.OneOf("role"))}
	if err := r.Err(); err != nil {
		return err
	}
	if err := control(c, "POST", "/people/invites", n, &made); err != nil {
		return err
	}

	made.Link = linkTo(made.Server, "/sign-up", made.Code)
	note := "Send this link. It works once and expires at " + print.NewPainter(c).Moment(made.ExpiresAt) + "."
	return printLink(c, made, made.Link, note)
}

func resetPassword(c *cli.Context, email string) error {
	var made ops.CreatedReset
	if err := control(c, "POST", "/people/resets", ops.NewReset{Email: email}, &made); err != nil {
		return err
	}

	made.Link = linkTo(made.Server, "/reset-password", made.Code)
	note := fmt.Sprintf("Send this link to %s. It works once and expires in 24 hours.", made.User.Email)
	return printLink(c, made, made.Link, note)
}

func setDisabled(c *cli.Context, email string, disabled bool) error {
	can := "can sign in again."
	if disabled {
		can = "can no longer sign in."
	}
	return askServer(c, "POST", "/people/disabled", ops.Disabling{Email: email, Disabled: disabled},
		func(t *print.Table, u wire.User) { t.Row(u.Email + " " + can) })
}

// linkTo is the address of a page with a code. A server that listens on all addresses is reached as localhost.
func linkTo(base, page, code string) string {
	// It was parsed before, or is the server's own.
	u, _ := url.Parse(base)
	if ip := net.ParseIP(u.Hostname()); ip != nil && ip.IsUnspecified() {
		u.Host = net.JoinHostPort("localhost", u.Port())
	}
	u = u.JoinPath(page)
	u.RawQuery = url.Values{"code": {code}}.Encode()
	return u.String()
}

// printLink prints a link, whole, and what to do with it.
func printLink(c *cli.Context, v any, link, note string) error {
	return print.Output(c, ops.InProject(v), func(t *print.Table) {
		t.Row(link)
		t.Row(note)
	})
}

// projectsCommand manages the projects of a running server, on the server's machine.
func projectsCommand() *cli.Command {
	common := append(config.ShowingFlags(), config.ServerDataFlag())
	return config.Commands("projects",
		"list, create, rename and archive projects, or create what a file lists, beside a running server",
		config.Command("list", "list projects", listProjects, []cli.Flag{config.ColumnsFlag()}, common),
		config.Command("create NAME", "create a project",
			config.WithArgument("the name of the new project", createProject), common),
		config.Command("rename NAME NEW_NAME", "rename a project; its records, people and keys stay",
			renameProject, common),
		config.Command("archive NAME",
			"close a project: nobody opens it, and its keys are refused; nothing is deleted",
			config.WithArgument("the name of one project; `promptspool projects list` shows them", archiveProject),
			[]cli.Flag{
				config.SwitchFlag("undo", "take it back: people open the project again, and its keys work"),
			}, common),
		config.Command("apply FILE",
			"create the projects, roles and keys that a file lists and that are missing",
			config.WithArgument("a file of projects; - is standard input", applyProjects),
			[]cli.Flag{config.SwitchFlag("dry-run", "say what would be done, and do nothing")}, common))
}

func createProject(c *cli.Context, name string) error {
	return changeProject(c, "/projects", ops.ProjectRequest{Name: name}, "is there.")
}

func archiveProject(c *cli.Context, name string) error {
	r := ops.ProjectRequest{Name: name, Undo: c.Bool("undo")}
	says := "is archived."
	if r.Undo {
		says = "is open again."
	}
	return changeProject(c, "/projects/archive", r, says)
}

func listProjects(c *cli.Context) error {
	return askServer(c, "GET", "/projects", nil, func(t *print.Table, list ops.ProjectList) {
		t.Head("PROJECT", ">PEOPLE", ">KEYS", "@CREATED", "@ARCHIVED")
		for _, p := range list.Items {
			t.Row(p.Name, p.People, p.Keys, t.Moment(p.CreatedAt), t.MomentOrNone(p.ArchivedAt))
		}
	})
}

func renameProject(c *cli.Context) error {
	if c.NArg() != 2 {
		return config.Usagef(c, "give the name of a project and its new name")
	}
	r := ops.ProjectRequest{Name: c.Args().Get(0), To: c.Args().Get(1)}
	return changeProject(c, "/projects/rename", r, "is the name of "+r.Name+" now.")
}

// changeProject makes a change, and says what a project is now.
func changeProject(c *cli.Context, path string, r ops.ProjectRequest, says string) error {
	return askServer(c, "POST", path, r, func(t *print.Table, a wire.Account) { t.Row(a.Name + " " + says) })
}

func applyProjects(c *cli.Context, path string) error {
	file, _, err := config.FileOrStdin(path)
	if err != nil {
		return err
	}
	defer file.Close()

	// A misspelled field must not be skipped: it may be a role.
	read := ops.Applying{Dry: c.Bool("dry-run")}
	decoder := yaml.NewDecoder(file)
	decoder.KnownFields(true)
	if err := decoder.Decode(&read.Wanted); err != nil {
		return fmt.Errorf("%s is no file of projects: %w; `promptspool docs projects` has an example", path, err)
	}
	return askServer(c, "POST", "/projects/apply", read, func(t *print.Table, applied ops.Applied) {
		for _, change := range applied.Changes {
			t.Row(change)
		}
		if len(applied.Changes) == 0 {
			t.Row("Nothing to change.")
		}
	})
}
