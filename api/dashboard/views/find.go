package views

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"promptspool/api/access"
	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/filterline"
	"promptspool/api/wire"
)

// offer is what a reader can be led to by its name.
type offer struct {
	Text string `json:"text"`
	Note string `json:"note"` // what it is
	Href string `json:"href"`
}

// templatePagesMax bounds the templates that are offered, of which a page has 100. A search by the whole name
// or the id finds all.
const templatePagesMax = 5

// offers returns what a reader can be led to besides the pages of the menu: saved views and templates.
func (p *pages) offers(c *frame.Exchange) (all []offer, err error) {
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

// findMax is how long a find looks for an id: calls are looked through for what no index has.
const findMax = 2 * time.Second

// find returns the address of what has an id, or of the template or score with a name; "" if there is none.
func (p *pages) find(c *frame.Exchange, id string) (to string, err error) {
	ctx, cancel := context.WithTimeout(c.Context(), findMax)
	defer cancel()
	by, lower := c.Identity(), strings.ToLower(id)
	rollup := func(of, id, to string) func() (string, error) {
		return func() (string, error) {
			is := wire.Where("id", "is", id)
			page, err := p.records.Rollups(ctx, by, wire.RollupSearch{Of: of, Having: &is, PerPage: 1})
			return unlessNone(len(page.Items), to), err
		}
	}
	calls := func(field, to string) func() (string, error) {
		return func() (string, error) {
			is := wire.Where(field, "is", id)
			page, err := p.records.Search(ctx, by, wire.Search{FilterGroup: &is, PerPage: 1})
			return unlessNone(len(page.Items), to), err
		}
	}

	ofUser := filter.Filter{}.With(filterline.Where("user", "", id))
	for _, look := range []func() (string, error){
		func() (string, error) {
			_, err := p.records.Request(ctx, by, lower)
			return "/requests/" + lower, err
		},
		rollup("traces", lower, "/traces/"+lower),
		rollup("sessions", id, address.Session(id)),
		rollup("users", id, address.Of("/sessions", ofUser.Values())),
		func() (string, error) {
			t, err := p.templates.Head(ctx, by, id)
			return address.Template("/template", t.Name), err
		},
		func() (string, error) { return p.key(c, id) },
		func() (string, error) { return p.span(ctx, by, lower) },
		calls("score_name", "/scores/"+url.PathEscape(id)),
		calls("group_id", filter.RequestsWith("group", "", id)),
	} {
		to, err = look()
		if err == nil && to != "" {
			return to, nil
		}
		if ctx.Err() != nil {
			return "", c.Context().Err()
		}
		if err != nil && !wire.IsCode(err, wire.CodeNotFound) && !wire.IsCode(err, wire.CodeInvalid) {
			return "", err
		}
	}

	return "", nil
}

func unlessNone(n int, to string) string {
	if n == 0 {
		return ""
	}
	return to
}

// key returns the address of a key of the project, if the reader may see it.
func (p *pages) key(c *frame.Exchange, id string) (to string, err error) {
	if !c.User.Role.Includes(access.Role("GET /keys")) {
		return "", nil
	}
	all, err := p.keys.Keys(c.Context())
	for _, k := range all {
		if k.ID == id && k.AccountID == c.User.AccountID {
			to = "/keys#" + id
		}
	}

	return to, err
}

// span returns the address of a span of the newest traces.
func (p *pages) span(ctx context.Context, by wire.Identity, id string) (to string, err error) {
	if len(id) != len("5fb397be34d26b51") {
		return "", nil
	}
	page, err := p.records.Spans(ctx, by, wire.SpanSearch{ID: id, PerPage: 1})
	for _, s := range page.Items {
		to = address.With("/traces/"+s.TraceID, "span", id)
	}

	return to, err
}
