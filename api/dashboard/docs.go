package dashboard

import (
	"html/template"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"promptspool/api/dashboard/docs"
)

// docsView is what a page of the documentation shows.
type docsView struct {
	Sections []docs.Section
	Page     *docs.Page // nil for the list of all pages, and for what a search found
	HTML     template.HTML
	Query    string // what was searched for
	Hits     []docs.Hit
}

// NewDocs returns a Dashboard that serves only the documentation, for processes without
// sign-in.
func NewDocs(version string, logger *slog.Logger) *Dashboard {
	c := Config{Version: version, Logger: logger, Now: time.Now}
	d := newDashboard(c, parsePages("docs", "error"))
	d.protect()

	return d
}

// docRoutes serves the documentation to everybody: it shows no account's data.
func (d *Dashboard) docRoutes() {
	d.open("GET /docs", d.docsList)
	d.open("GET /docs/{page}", d.docsPage)
	d.mux.HandleFunc("GET /docs/pictures/{name}", d.staticFile(docs.Pictures))

	d.open("GET /llms.txt", func(c *call) error {
		return sendText(c, "text/plain; charset=utf-8", docs.LLMs(d.basePath()))
	})
	d.open("GET /openapi.json", func(c *call) error {
		return sendText(c, "application/json", docs.OpenAPI(d.Version, d.publicAddress()))
	})
	d.open("GET /openapi.yaml", func(c *call) error {
		return sendText(c, "application/yaml", docs.OpenAPIAsYAML(d.Version, d.publicAddress()))
	})
}

// queryBytesMax bounds what is searched for in the documentation.
const queryBytesMax = 200

// docsList shows all pages, or those that a search found.
func (d *Dashboard) docsList(c *call) error {
	query := strings.TrimSpace(c.URL.Query().Get("q"))
	if len(query) > queryBytesMax {
		query = strings.ToValidUTF8(query[:queryBytesMax], "")
	}
	if query != "" {
		v := docsView{Sections: docs.Sections(), Query: query, Hits: docs.Search(query)}
		return d.showDocs(c, "Search the documentation", v)
	}

	return d.showDocs(c, "Documentation", docsView{Sections: docs.Sections()})
}

// docsPage answers with a page, or with its Markdown source if the name ends with .md.
func (d *Dashboard) docsPage(c *call) error {
	name, source := strings.CutSuffix(c.PathValue("page"), ".md")
	p := docs.Find(name)
	switch {
	case p == nil:
		d.findReader(c)
		return errNoPage
	case source:
		return sendText(c, "text/plain; charset=utf-8", p.Source)
	}

	return d.showDocs(c, p.Title, docsView{Sections: docs.Sections(), Page: p, HTML: d.pageFor(c, p)})
}

// hostBytesMax is the length of the longest host name with its port. The examples do not
// repeat anything longer, which nobody could have typed.
const hostBytesMax = 253 + len(":65535")

// pageFor renders a page whose examples use the address that the reader uses.
func (d *Dashboard) pageFor(c *call, p *docs.Page) template.HTML {
	// A process in which nobody signs in is a sidecar.
	server, sidecar := docs.ServerAddress, docs.SidecarAddress
	switch {
	case len(c.Host) > hostBytesMax:
	case d.People == nil:
		sidecar = d.base(c.Request)
	default:
		server = d.base(c.Request)
	}

	// It holds nothing but our own pages and an address, which is escaped.
	return template.HTML(p.HTML(server, sidecar))
}

func (d *Dashboard) showDocs(c *call, title string, v docsView) error {
	d.findReader(c)

	return d.show(c, http.StatusOK, "docs", title, "docs", v)
}

func sendText(c *call, contentType, content string) error {
	c.w.Header().Set("Content-Type", contentType)
	_, err := io.WriteString(c.w, content)

	return err
}
