package views

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"promptspool/api/access"
	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/filterline"
	"promptspool/api/wire"
)

// offer is a page that a reader can be led to by its name.
type offer struct {
	Text string `json:"text"`
	Note string `json:"note"` // what it is
	Href string `json:"href"`
}

// menu are the pages that are offered, each with its pattern in package access.
var menu = []struct{ name, href, pattern string }{
	{"Overview", "/", "GET /{$}"},
	{"Requests", "/requests", "GET /requests"},
	{"Requests that failed", "/requests?filter=status:error", "GET /requests"},
	{"Traces", "/traces", "GET /traces"},
	{"Sessions", "/sessions", "GET /sessions"},
	{"Users", "/users", "GET /users"},
	{"Templates", "/templates", "GET /templates"},
	{"New template", "/template/edit", "GET /template/edit"},
	{"Scores and review queues", "/scores", "GET /scores"},
	{"Alerts", "/alerts", "GET /alerts"},
	{"Sidecars", "/sidecars", "GET /sidecars"},
	{"All views", "/views", "GET /views"},
	{"All projects", "/projects", "GET /projects"},
	{"Targets", "/targets", "GET /targets"},
	{"Keys", "/keys", "GET /keys"},
	{"People", "/people", "GET /people"},
	{"Audit log", "/audit", "GET /audit"},
	{"Documentation", "/docs", "GET /docs"},
}

// templatePagesMax bounds the templates that are offered, of which a page has 100. A search by the whole name
// or the id finds all.
const templatePagesMax = 5

// offers returns what a reader can be led to: pages, saved views and templates.
func (p *pages) offers(c *frame.Exchange) (all []offer, err error) {
	for _, m := range menu {
		if c.User.Role.Includes(access.Role(m.pattern)) {
			all = append(all, offer{m.name, "page", m.href})
		}
	}
	saved, err := p.views.Views(c.Context(), c.Identity())
	for _, v := range saved {
		all = append(all, offer{v.Name, "view of " + row{View: v}.Page(), frame.ViewAddress(v)})
	}

	for page, pages := 1, 1; err == nil && page <= min(pages, templatePagesMax); page++ {
		var list wire.TemplateList
		list, err = p.templates.List(c.Context(), c.Identity(), wire.TemplateListQuery{Page: page, PerPage: 100})
		for _, t := range list.Items {
			all = append(all, offer{t.Name, "template", address.Template("/template", t.Name)})
		}
		pages = list.Pages
	}

	return all, err
}

// offersAnswer answers with all offers, of which the page's script shows those that fit.
func (p *pages) offersAnswer(c *frame.Exchange) error {
	all, err := p.offers(c)
	if err != nil {
		return err
	}
	text, err := json.Marshal(map[string]any{"offers": all})
	if err != nil {
		return err
	}

	return c.Send("application/json", string(text))
}

// findView is what the page that finds something shows.
type findView struct {
	Query  string
	Words  string // the address of the requests with these words
	Offers []offer
}

// findPage leads to what has an id or a name, or lists what a reader can be led to.
func (p *pages) findPage(c *frame.Exchange) error {
	v := findView{Query: strings.TrimSpace(c.URL.Query().Get("q"))}
	if v.Query != "" && len(v.Query) <= wire.NameRunesMax {
		to, err := p.find(c, v.Query)
		switch {
		case to != "":
			return c.Redirect(to, "")
		case err != nil:
			return err
		}
	}

	all, err := p.offers(c)
	v.Offers = slices.DeleteFunc(all, func(o offer) bool {
		text := strings.ToLower(o.Text + " " + o.Note)
		missing := func(word string) bool { return !strings.Contains(text, word) }
		return slices.ContainsFunc(strings.Fields(strings.ToLower(v.Query)), missing)
	})
	phrase := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(v.Query) + `"`
	v.Words = address.Of("/requests", url.Values{"filter": {phrase}})
	if err != nil {
		return err
	}

	return c.Show(http.StatusOK, "find", frame.Title(v.Query, "Find"), "find", v)
}

// find returns the address of what has an id, or of the template with a name; "" if there is none.
func (p *pages) find(c *frame.Exchange, id string) (to string, err error) {
	lower := strings.ToLower(id)
	for _, look := range []func() (string, error){
		func() (string, error) {
			if _, err := wire.ParseID(id); err != nil {
				return "", nil
			}
			_, err := p.records.Request(c.Context(), c.Identity(), lower)
			return "/requests/" + lower, err
		},
		func() (string, error) { return "/traces/" + lower, p.exists(c, "traces", lower) },
		func() (string, error) { return address.Session(id), p.exists(c, "sessions", id) },
		func() (string, error) {
			of := filter.Filter{}.With(filterline.Where("user", "", id))
			return address.Of("/sessions", of.Values()), p.exists(c, "users", id)
		},
		func() (string, error) {
			t, err := p.templates.Head(c.Context(), c.Identity(), id)
			return address.Template("/template", t.Name), err
		},
		func() (string, error) { return "/keys#" + id, p.hasKey(c, id) },
	} {
		to, err = look()
		if err == nil && to != "" {
			return to, nil
		}
		if err != nil && !wire.IsCode(err, wire.CodeNotFound) {
			return "", err
		}
	}

	return "", nil
}

// errNotThis means that it is something else.
var errNotThis = wire.Errorf(wire.CodeNotFound, "There is no such thing.")

// exists returns CodeNotFound unless there is a trace, a session or a user of an id.
func (p *pages) exists(c *frame.Exchange, of, id string) error {
	is := wire.Where("id", "is", id)
	page, err := p.records.Rollups(c.Context(), c.Identity(), wire.RollupSearch{Of: of, Having: &is, PerPage: 1})
	if err == nil && len(page.Items) == 0 {
		err = errNotThis
	}

	return err
}

// hasKey returns CodeNotFound unless the project has a key of an id, and the reader may see it.
func (p *pages) hasKey(c *frame.Exchange, id string) error {
	if !c.User.Role.Includes(access.Role("GET /keys")) {
		return errNotThis
	}
	all, err := p.keys.Keys(c.Context())
	isIt := func(k wire.Key) bool { return k.ID == id && k.AccountID == c.User.AccountID }
	if err == nil && !slices.ContainsFunc(all, isIt) {
		err = errNotThis
	}

	return err
}
