package main

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/api/ops"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

// peopleCommand manages who signs in at a running server, on the server's machine.
func peopleCommand() *cli.Command {
	address := config.TextFlag("url", "", "the `URL` at which people open the dashboard; "+
		"without it the server's --public-url, or the address that it listens on, unless that is a unix socket")
	both := append(config.ShowingFlags(), config.ServerDataFlag())
	links := append([]cli.Flag{address}, both...)
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
		config.Command("invite", "print a link with which one person signs up", invitePerson, invite, links),
		config.Command("reset-password EMAIL", "print a link with which a person chooses a new password",
			config.WithArgument(person, resetPassword), links),
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
	// Before anything is made: a wrong --url must not create an invite.
	base, err := linkBase(c)
	if err != nil {
		return err
	}
	var made ops.CreatedInvite
	r := config.Read(c)
	n := ops.NewInvite{Account: r.Text("project"), Role: wire.Role(r.OneOf("role"))}
	if err := r.Err(); err != nil {
		return err
	}
	if err := control(c, "POST", "/people/invites", n, &made); err != nil {
		return err
	}

	made.Link = linkTo(cmp.Or(base, made.Server), "/sign-up", made.Code)
	note := "Send this link. It works once and expires at " + print.NewPainter(c).Moment(made.ExpiresAt) + "."
	return printLink(c, made, made.Link, note)
}

func resetPassword(c *cli.Context, email string) error {
	// Before anything is made, as for an invite.
	base, err := linkBase(c)
	if err != nil {
		return err
	}
	var made ops.CreatedReset
	if err := control(c, "POST", "/people/resets", ops.NewReset{Email: email}, &made); err != nil {
		return err
	}

	made.Link = linkTo(cmp.Or(base, made.Server), "/reset-password", made.Code)
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

// linkBase is --url, without a slash at its end; "" if it is absent.
func linkBase(c *cli.Context) (string, error) {
	given := config.Read(c).Text("url")
	// The server then names its own address, which only it knows.
	if given == "" {
		return "", nil
	}
	u, err := url.Parse(given)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" {
		return "", config.WrongValue(c, "url", given, "is not a URL such as https://prompts.example.com")
	}
	return u.Scheme + "://" + u.Host + strings.TrimRight(u.EscapedPath(), "/"), nil
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
