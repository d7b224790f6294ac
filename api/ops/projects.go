package ops

import (
	"context"
	"encoding/json"
	"regexp"

	"github.com/valyala/fasthttp"

	"promptspool/api/wire"
)

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
