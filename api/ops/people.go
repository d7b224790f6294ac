package ops

import (
	"context"
	"encoding/json"

	"github.com/valyala/fasthttp"

	"promptspool/api/wire"
)

// People manages the users of the dashboard, in all accounts. On a server it is auth's
// Operator.
type People interface {
	People(ctx context.Context, account string) ([]wire.User, error)
	Invite(ctx context.Context, account string, role wire.Role) (wire.Secret, wire.Invite, error)
	MakeReset(ctx context.Context, email string) (wire.Secret, wire.User, error)
	SetDisabled(ctx context.Context, email string, disabled bool) (wire.User, error)
	Projects
}

// PeopleList is the people of a server or of an account.
type PeopleList struct {
	Items []wire.User `json:"items"`
}

// NewInvite asks for an invite.
type NewInvite struct {
	Account string    `json:"project"`
	Role    wire.Role `json:"role"`
}

// CreatedInvite is an invite with its code, which is shown only this once.
type CreatedInvite struct {
	wire.Invite
	Code   string `json:"code"`
	Server string `json:"server"` // where the process takes requests
	Link   string `json:"link"`   // to send; the command knows it
}

// NewReset asks for a password reset link.
type NewReset struct {
	Email string `json:"email"`
}

// CreatedReset is the code of a password reset link, which is shown only this once.
type CreatedReset struct {
	User   wire.User `json:"user"`
	Code   string    `json:"code"`
	Server string    `json:"server"` // where the process takes requests
	Link   string    `json:"link"`   // to send; the command knows it
}

// Disabling asks to disable a person's signing in, or to enable it again.
type Disabling struct {
	Email    string `json:"email"`
	Disabled bool   `json:"disabled"`
}

// peopleRoutes manage people. server is the process's own address, with a scheme.
func peopleRoutes(people People, server string) []route {

	return []route{
		{"GET", "/people", func(ctx *fasthttp.RequestCtx) (any, error) {
			all, err := people.People(ctx, string(ctx.QueryArgs().Peek("project")))
			return PeopleList{Items: append([]wire.User{}, all...)}, err
		}},
		{"POST", "/people/invites", posted(func(ctx context.Context, n NewInvite) (any, error) {
			code, invite, err := people.Invite(ctx, n.Account, n.Role)
			return CreatedInvite{Invite: invite, Code: string(code), Server: server}, err
		})},
		{"POST", "/people/resets", posted(func(ctx context.Context, n NewReset) (any, error) {
			code, u, err := people.MakeReset(ctx, n.Email)
			return CreatedReset{User: u, Code: string(code), Server: server}, err
		})},
		{"POST", "/people/disabled", posted(func(ctx context.Context, n Disabling) (any, error) {
			return people.SetDisabled(ctx, n.Email, n.Disabled)
		})},
	}
}

// checkShared rejects a key for an account that was founded by signing up, unless the
// caller asked for one.
func checkShared(ctx context.Context, people People, n NewKey) error {
	if people == nil || n.Shared || n.Account == "" {
		return nil
	}

	// Where anyone can sign up, a stranger may have taken the account's name, and would
	// read everything that is logged with the key.
	all, err := people.People(ctx, n.Account)
	if err != nil {
		return err
	}

	for _, u := range all {
		if u.Founder {
			return wire.Errorf(wire.CodeConflict,
				"%s founded the project %s by signing up, without an invite. Its people see everything that is "+
					"logged with a key of it. Choose another --project, or give --shared if that is meant.",
				u.Email, n.Account)
		}
	}

	return nil
}

// posted returns a handler that answers a request by its body.
func posted[T any](answer func(ctx context.Context, body T) (any, error)) handler {
	return func(ctx *fasthttp.RequestCtx) (any, error) {
		var body T
		if err := json.Unmarshal(ctx.PostBody(), &body); err != nil {
			return nil, wire.Errorf(wire.CodeBadJSON, "The body is not valid: %v", err)
		}
		return answer(ctx, body)
	}
}
