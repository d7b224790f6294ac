// Package dashboard serves what people see of a server in their browser: requests and
// scores, templates and their versions, statistics, sidecars, people, keys and the docs.
//
// Every page is rendered here, as a whole, from html/template, and works without scripts;
// a small script makes it quicker. Nothing is loaded from other hosts.
//
// Whatever was logged is data: it is escaped wherever it is shown, and the
// Content-Security-Policy allows no script, style or image but our own.
//
// The pages of a subject are a section: a package with a table of its routes, and an HTML file for each
// page. A section uses the packages below it, and no other section.
//
//	overview/ requests/ sessions/ review/ scores/ templates/    the sections, besides docs.go, views/ and people/
//	frame/                                      what is around every page: routes, sessions, layout, errors
//	filter/ conversation/                       what several sections show: the filter of requests; messages
//	chart/ markup/ textdiff/ number/ address/   drawing and printing
//	docs/                                       the documentation itself
package dashboard

import (
	"cmp"
	"embed"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"

	"promptspool/api/dashboard/alerts"
	"promptspool/api/dashboard/conversation"
	"promptspool/api/dashboard/docs"
	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/overview"
	"promptspool/api/dashboard/people"
	"promptspool/api/dashboard/requests"
	"promptspool/api/dashboard/review"
	"promptspool/api/dashboard/scores"
	"promptspool/api/dashboard/sessions"
	"promptspool/api/dashboard/targets"
	"promptspool/api/dashboard/templates"
	"promptspool/api/dashboard/views"
	"promptspool/api/wire"
	"promptspool/api/words"
)

// Retention limits what the server keeps of each account.
type Retention = overview.Retention

// Config is what a dashboard is made from. All fields are required.
type Config struct {
	frame.Config

	Records   wire.Archive
	Recorder  wire.Recorder
	Templates wire.Registry
	Providers []string // the providers that llm_kwargs can be made for
	Retention Retention
	Targets   wire.Targets
	Alerts    wire.Alerts
}

// New returns the dashboard of a server. It panics if one of its pages does not parse.
func New(c Config) *frame.Frame { return frame.New(c.Config, sections(c)...) }

// sections returns all sections of a server.
func sections(c Config) []frame.Section {
	return []frame.Section{
		documentation(c.Config),
		frame.SignIn(),
		overview.Pages(c.Records, c.Templates, c.Retention),
		requests.Pages(c.Records, c.Recorder, c.Templates),
		sessions.Pages(c.Records, c.Recorder),
		review.Pages(c.Records, c.Recorder, c.Scoring),
		scores.Pages(c.Records, c.Scoring),
		templates.Pages(c.Templates, c.Records, c.Providers),
		views.Pages(c.Views, c.Records, c.Templates, c.Keys),
		alerts.Pages(c.Alerts, c.Views, c.Targets),
		targets.Pages(c.Targets),
		people.Pages(c.People, c.Keys),
	}
}

// NewDocs returns a dashboard with only the documentation, for processes without sign-in.
func NewDocs(version string, logger *slog.Logger) *frame.Frame {
	around := frame.Config{Version: version, Logger: logger}

	return frame.New(around, documentation(around))
}

// Routes lists what the dashboard serves, except its files.
func Routes() (all []frame.Route) {
	for _, section := range sections(Config{}) {
		all = append(all, section.Routes...)
	}

	return all
}

// docsView is what a page of the documentation shows.
type docsView struct {
	Sections []docs.Section
	Page     *docs.Page // nil for the list of all pages, and for what a search found
	HTML     template.HTML
	Query    string // what was searched for
	Hits     []docs.Hit
}

// Excerpt returns the excerpt of a hit, in which the words that were searched for are marked.
func (v docsView) Excerpt(h docs.Hit) template.HTML {
	var sought []words.Sought
	for word := range strings.FieldsSeq(v.Query) {
		sought = append(sought, words.Seek("contains", word))
	}

	return conversation.Excerpt(h.Excerpt, sought)
}

// manual is the pages of the documentation.
type manual struct{ frame.Config }

//go:embed docs.html
var docsHTML embed.FS

// documentation returns the pages of the documentation. They show no account's data, so everybody may see
// them.
func documentation(around frame.Config) frame.Section {
	m := manual{around}

	return frame.Section{
		HTML: docsHTML,
		Routes: []frame.Route{
			{Pattern: "GET /docs", Page: m.list},
			{Pattern: "GET /docs/{page}", Page: m.page},
			{Pattern: "GET /llms.txt", Page: func(c *frame.Exchange) error {
				return c.Send("text/plain; charset=utf-8", docs.LLMs(m.BasePath()))
			}},
			{Pattern: "GET /openapi.json", Page: func(c *frame.Exchange) error {
				return c.Send("application/json", docs.OpenAPI(m.Version, m.PublicAddress()))
			}},
		},
		Files: map[string]fs.FS{"/docs/pictures/": docs.Pictures},
	}
}

// queryBytesMax bounds what is searched for in the documentation.
const queryBytesMax = 200

// list shows all pages, or those that a search found.
func (m manual) list(c *frame.Exchange) error {
	query := strings.TrimSpace(c.URL.Query().Get("q"))
	if len(query) > queryBytesMax {
		query = strings.ToValidUTF8(query[:queryBytesMax], "")
	}
	if query != "" {
		v := docsView{Sections: docs.Sections(), Query: query, Hits: docs.Search(query)}
		return showDocs(c, "Search the documentation", v)
	}

	return showDocs(c, "Documentation", docsView{Sections: docs.Sections()})
}

// page answers with a page, or with its Markdown source if the name ends with .md.
func (m manual) page(c *frame.Exchange) error {
	name, source := strings.CutSuffix(c.PathValue("page"), ".md")
	p := docs.Find(name)
	switch {
	case p == nil:
		c.FindReader()
		return frame.ErrNoPage
	case source:
		return c.Send("text/plain; charset=utf-8", p.Source)
	}

	return showDocs(c, p.Title, docsView{Sections: docs.Sections(), Page: p, HTML: m.render(c, p)})
}

// hostBytesMax is the length of the longest host name with its port. The examples do not
// repeat anything longer, which cannot have been typed.
const hostBytesMax = 253 + len(":65535")

// render renders a page whose examples use the address that the reader uses.
func (m manual) render(c *frame.Exchange, p *docs.Page) template.HTML {
	// A process without sign-in is a sidecar.
	server, sidecar := docs.ServerAddress, docs.SidecarAddress
	switch {
	case len(c.Host) > hostBytesMax:
	case m.People == nil:
		sidecar = c.Base()
	default:
		server, sidecar = c.Base(), cmp.Or(m.SidecarURL, sidecar)
	}

	// It holds nothing but our own pages and an address, which is escaped.
	return template.HTML(p.HTML(server, sidecar))
}

func showDocs(c *frame.Exchange, title string, v docsView) error {
	c.FindReader()

	return c.Show(http.StatusOK, "docs", title, "docs", v)
}
