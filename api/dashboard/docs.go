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
	Page     *docs.Page // nil: the list of all
	HTML     template.HTML
}

// NewDocs makes a Dashboard that serves the documentation alone, for a process where nobody signs in.
func NewDocs(version string, logger *slog.Logger) *Dashboard {
	d := newDashboard(Config{Version: version, Logger: logger, Now: time.Now}, parsePages("docs", "error"))
	d.protect()

	return d
}

// docRoutes serves the documentation to everybody: it shows no account's data.
func (d *Dashboard) docRoutes() {
	d.open("GET /docs", d.docsList)
	d.open("GET /docs/{page}", d.docsPage)
	d.open("GET /llms.txt", func(c *call) error { return plainText(c, docs.LLMs()) })
	d.open("GET /openapi.json", func(c *call) error { return sendText(c, "application/json", docs.OpenAPI(d.Version)) })
	d.open("GET /openapi.yaml", func(c *call) error { return sendText(c, "application/yaml", docs.OpenAPIAsYAML(d.Version)) })
}

func (d *Dashboard) docsList(c *call) error {
	return d.showDocs(c, "Documentation", docsView{Sections: docs.Sections()})
}

// docsPage answers with a page, or, if its name ends with .md, with its source.
func (d *Dashboard) docsPage(c *call) error {
	name, source := strings.CutSuffix(c.PathValue("page"), ".md")
	p := docs.Find(name)
	switch {
	case p == nil:
		d.knowReader(c)
		return errNoPage
	case source:
		return plainText(c, p.Source)
	}

	return d.showDocs(c, p.Title, docsView{docs.Sections(), p, d.pageFor(c, p)})
}

// hostBytesMax is the length of the longest name of a host with its port: a longer one is not repeated in each example.
const hostBytesMax = 253 + len(":65535")

// pageFor renders a page with the address that its reader uses. Only our own pages and an escaped address are in it.
func (d *Dashboard) pageFor(c *call, p *docs.Page) template.HTML {
	server, sidecar := docs.ServerAddress, docs.SidecarAddress
	switch {
	case len(c.Host) > hostBytesMax:
	case d.People == nil:
		sidecar = base(c.Request)
	default:
		server = base(c.Request)
	}

	return template.HTML(p.HTML(server, sidecar))
}

func (d *Dashboard) showDocs(c *call, title string, v docsView) error {
	d.knowReader(c)

	return d.show(c, http.StatusOK, "docs", title, "docs", v)
}

// knowReader finds out who is signed in, for the menu. A page of the documentation is shown without, too.
func (d *Dashboard) knowReader(c *call) {
	if s, err := d.session(c.Request); err == nil {
		c.SignedIn = s
	}
}

func plainText(c *call, content string) error {
	return sendText(c, "text/plain; charset=utf-8", content)
}

func sendText(c *call, kind, content string) error {
	c.w.Header().Set("Content-Type", kind)
	_, err := io.WriteString(c.w, content)

	return err
}
