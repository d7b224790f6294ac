package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"promptspool/api/ops"
	"promptspool/api/wire"
)

// twoPeople are a server's people, as its control socket manages them.
type twoPeople struct{ allPeople }

// allPeople is what twoPeople has no answers for.
type allPeople = ops.People

func (twoPeople) People(_ context.Context, account string) ([]wire.User, error) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	all := []wire.User{
		{Email: "ann@example.com", AccountName: "acme", Role: wire.RoleOwner, CreatedAt: at},
		{Email: "bob@example.com", AccountName: "other", Role: wire.RoleViewer, CreatedAt: at, DisabledAt: &at},
		{Email: "ann@example.com", AccountName: "other", Role: wire.RoleViewer, CreatedAt: at.Add(time.Hour)},
	}
	if account == "acme" {
		all = all[:1]
	}
	return all, nil
}

func (twoPeople) Invite(_ context.Context, account string, role wire.Role) (wire.Secret, wire.Invite, error) {
	until := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	return "aaaaa-bbbbb", wire.Invite{ID: "1", AccountName: account, Role: role, ExpiresAt: until}, nil
}

func (twoPeople) MakeReset(_ context.Context, email string) (wire.Secret, wire.User, error) {
	return "ccccc-ddddd", wire.User{Email: email}, nil
}

func (twoPeople) SetDisabled(_ context.Context, email string, _ bool) (wire.User, error) {
	return wire.User{Email: email}, nil
}

func TestPeople(t *testing.T) {
	withoutVariables(t)
	t.Setenv("PROMPTSPOOL_DATA", controlledBy(t, ops.ControlConfig{People: twoPeople{}, Server: "http://[::]:8788"}))
	const at = "2026-03-01 12:00:00 UTC"
	Equal(t, "list", say(t, "people", "list", "--utc"), said{Out: "" +
		"EMAIL            PROJECT     ROLE          SINCE                    DISABLED\n" +
		"ann@example.com  acme,other  owner,viewer  " + at + "  -\n" +
		"bob@example.com  other       viewer        " + at + "  " + at + "\n"})
	list := say(t, "people", "list", "--project", "acme")
	if strings.Contains(list.Out, "bob@") || !strings.Contains(list.Out, "ann@") {
		t.Errorf("the people of a project are %+v", list)
	}
	t.Setenv("PROMPTSPOOL_PEOPLE_LIST_PROJECT", "acme")
	Equal(t, "the variable", say(t, "people", "list"), list)

	note := "Send this link. It works once and expires at 2026-11-29 12:00:00 UTC.\n"
	Equal(t, "invite", say(t, "people", "invite", "--role", "editor", "--utc"),
		said{Out: "http://localhost:8788/sign-up?code=aaaaa-bbbbb\n" + note})
	link := "http://localhost:8788/reset-password?code=ccccc-ddddd"
	Equal(t, "reset", say(t, "people", "reset-password", "ann@example.com"), said{Out: link + "\n" +
		"Send this link to ann@example.com. It works once and expires in 24 hours.\n"})
	got := say(t, "people", "reset-password", "ann@example.com", "-o", "json")
	hasLink := strings.Contains(got.Out, `"link": "`+link+`"`)
	if got.Code != 0 || !hasLink || !strings.Contains(got.Out, `"code": "ccccc-ddddd"`) {
		t.Errorf("as JSON: %+v", got)
	}
	Equal(t, "disable", say(t, "people", "disable", "ann@example.com"),
		said{Out: "ann@example.com can no longer sign in.\n"})
	Equal(t, "enable", say(t, "people", "enable", "ann@example.com"), said{Out: "ann@example.com can sign in again.\n"})

	Equal(t, "whom", say(t, "people", "disable"), said{Code: 2,
		Err: "promptspool: give the email of one person; `promptspool people list` shows them\n" +
			"See `promptspool people disable --help`.\n"})
}

func TestPeopleOfAProcessThatHasNone(t *testing.T) {
	withoutVariables(t)
	Equal(t, "list", say(t, "people", "list", "--data", controlled(t, nil, nil)), said{Code: 1,
		Err: "promptspool: This process has no sign-in; only a server has a dashboard. " +
			"Give the server's data folder as --data.\n"})
}
