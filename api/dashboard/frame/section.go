package frame

import (
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"strings"

	"promptspool/api/access"
	"promptspool/api/wire"
)

// Section is some of the dashboard's pages, with what they need.
type Section struct {
	Routes  []Route
	HTML    fs.FS              // has NAME.html for the page NAME of Call.Show
	Files   map[string]fs.FS   // what is served as it is, by the path of its folder
	Notices map[string]string  // by the words of Call.Redirect
	Undos   map[string]Undoing // by the kinds of Call.Offer
}

// Route is a method and a path that a section serves.
type Route struct {
	Pattern string // as http.ServeMux takes it; package access has the role that it needs
	Page    func(c *Exchange) error

	// Personal marks a form that acts in no project: it may come from a page of any of them.
	Personal bool

	// Review, if set, shows the route's form again to a person whose session had ended
	// when they sent it. See resume.go.
	Review func(c *Exchange) error
}

// Role returns the least role that may call the route; "" if no session is needed.
func (r Route) Role() wire.Role { return access.Role(r.Pattern) }

// newLayout parses the layout, which is around each page, and the components that they share.
func newLayout() *template.Template {
	return template.Must(template.New("").Funcs(helpers).ParseFS(shared, "layout.html", "components/*.html"))
}

// add adds a section.
func (f *Frame) add(section Section) {
	for _, r := range section.Routes {
		f.mux.HandleFunc(r.Pattern, func(w http.ResponseWriter, request *http.Request) {
			c := &Exchange{Request: request, W: w, frame: f}
			if err := c.answer(r); err != nil {
				c.fail(err)
			}
		})
		if r.Review != nil {
			f.reviews[r.Pattern] = r
		}
	}
	for folder, content := range section.Files {
		f.mux.HandleFunc("GET "+folder+"{name}", f.serveFiles(content))
	}
	maps.Copy(f.files, section.Files)
	maps.Copy(f.notices, section.Notices)
	maps.Copy(f.undos, section.Undos)

	names, err := fs.Glob(section.HTML, "*.html")
	if err != nil || len(names) == 0 {
		panic(fmt.Sprintf("dashboard: no pages: %v", err))
	}
	// Every page gets its own copy of the layout, because pages define templates of the
	// same names.
	for _, file := range names {
		name := strings.TrimSuffix(path.Base(file), ".html")
		if f.pages[name] != nil {
			panic("dashboard: two sections have a page " + name)
		}
		f.pages[name] = template.Must(template.Must(f.layout.Clone()).ParseFS(section.HTML, file))
	}
}
