package ops

import (
	"context"
	"encoding/json"
	"regexp"

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

// Projects manages projects; a part of People.
type Projects interface {
	Projects(ctx context.Context) ([]wire.Account, error)
	CreateProject(ctx context.Context, name string) (wire.Account, error)
	RenameProject(ctx context.Context, name, to string) (wire.Account, error)
	ArchiveProject(ctx context.Context, name string, archive bool) (wire.Account, error)
	Apply(ctx context.Context, w wire.Wanted, dry bool) (done []string, err error)
}

// Project is a project, with how many people it has and how many keys that work.
type Project struct {
	wire.Account
	People int `json:"people"`
	Keys   int `json:"keys"`
}

// ProjectList is all projects of a server.
type ProjectList struct {
	Items []Project `json:"items"`
}

// ProjectRequest asks for a change of a project.
type ProjectRequest struct {
	Name string `json:"name"`
	To   string `json:"to,omitempty"`   // its new name
	Undo bool   `json:"undo,omitempty"` // takes its archiving back
}

// Applying asks for what a file wants.
type Applying struct {
	wire.Wanted
	Dry bool `json:"dry,omitempty"` // only says what would be done
}

// Applied says what was done, one sentence for each change.
type Applied struct {
	Changes []string `json:"changes"`
}

// projectRoutes manage projects.
func projectRoutes(c ControlConfig) []route {
	projects := c.People

	return []route{
		{"GET", "/projects", func(ctx *fasthttp.RequestCtx) (any, error) { return listProjects(ctx, c) }},
		{"POST", "/projects", posted(func(ctx context.Context, r ProjectRequest) (any, error) {
			return projects.CreateProject(ctx, r.Name)
		})},
		{"POST", "/projects/rename", posted(func(ctx context.Context, r ProjectRequest) (any, error) {
			return projects.RenameProject(ctx, r.Name, r.To)
		})},
		{"POST", "/projects/archive", posted(func(ctx context.Context, r ProjectRequest) (any, error) {
			return projects.ArchiveProject(ctx, r.Name, !r.Undo)
		})},
		{"POST", "/projects/apply", posted(func(ctx context.Context, a Applying) (any, error) {
			done, err := projects.Apply(ctx, a.Wanted, a.Dry)
			return Applied{append([]string{}, done...)}, err
		})},
	}
}

func listProjects(ctx context.Context, c ControlConfig) (list ProjectList, err error) {
	all, err := c.People.Projects(ctx)
	if err != nil {
		return list, err
	}
	people, err := c.People.People(ctx, "")
	if err != nil {
		return list, err
	}
	keys, err := c.Keys.Keys(ctx)

	list.Items = []Project{}
	for _, a := range all {
		p := Project{Account: a}
		for _, u := range people {
			if u.AccountID == a.ID && u.DisabledAt == nil {
				p.People++
			}
		}
		for _, k := range keys {
			if k.AccountID == a.ID && k.RevokedAt == nil && !k.Archived {
				p.Keys++
			}
		}
		list.Items = append(list.Items, p)
	}

	return list, err
}

// accountMember is the name or the id of a project in JSON. Inside a text the quotes would be
// escaped, so it finds nothing there; nor has a name or an id a quote.
var accountMember = regexp.MustCompile(`"account(_id)?":("[^"]*")`)

// InProject returns v as JSON that names a project as people do; stored JSON has "account" for it.
func InProject(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		// These types marshal without errors.
		panic(err)
	}
	return accountMember.ReplaceAll(text, []byte(`"project$1":$2`))
}
