// Package docs is the documentation that travels with the binary: Markdown pages, readable in the repository as they
// are, and rendered here for a browser and for a terminal.
//
// A page begins with its title and a first paragraph that says which question it answers; lists of pages show both.
package docs

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"sync"

	"promptspool/api/wire/packed"
)

// pagesFile is all pages, as joined writes them.
//
//go:embed pages.zst
var pagesFile []byte

// joined are all pages in one text. Each begins with a line that has its name.
var joined = packed.Text(pagesFile)

// pageMark begins the line before a page. No page has such a line.
const pageMark = "\x00page "

// split returns the pages by their names.
func split(joined string) map[string]string {
	pages := map[string]string{}
	for page := range strings.SplitSeq(joined, pageMark) {
		name, source, _ := strings.Cut(page, "\n")
		pages[name] = source
	}

	return pages
}

// sections are the pages by what their readers do, in the order in which they are listed.
var sections = []struct{ title, pages string }{
	{"Start", "tutorial install concepts dashboard from-promptlayer"},
	{"Log calls", "log-python log-javascript log-go log-curl log-langchain " +
		"log-opentelemetry coding-agents metadata scores evaluate"},
	{"Templates", "templates templates-ci"},
	{"Find and count", "search filter"},
	{"Operate", "production deploy people projects oidc access reverse-proxy kubernetes postgresql citus scale " +
		"backup upgrade alerts troubleshooting"},
	{"Reference", "commands configuration metrics opentelemetry-requests opentelemetry-attributes limits security"},
	{"HTTP API", "api api-log api-opentelemetry api-templates api-find api-sidecars api-objects"},
	{"Contribute", "architecture contributing"},
}

// Section is a group of pages.
type Section struct {
	Title string
	Pages []*Page
}

// Page is one page.
type Page struct {
	Name     string // its file without .md, and its address below /docs
	Title    string
	Summary  string // its first paragraph, without markup
	Section  string
	Source   string // Markdown
	Previous *Page  // nil for the first
	Next     *Page  // nil for the last

	rendered func() rendered
}

// library is what the files are read into, once.
type library struct {
	sections []Section
	byName   map[string]*Page
}

var read = sync.OnceValue(readPages)

// Sections lists all pages in their order.
func Sections() []Section { return read().sections }

// Find returns the page with a name; nil if it does not exist.
func Find(name string) *Page { return read().byName[name] }

// Names lists the pages' names in their order.
func Names() (all []string) {
	for _, s := range Sections() {
		for _, p := range s.Pages {
			all = append(all, p.Name)
		}
	}

	return all
}

// readPages reads all files. It panics if one of the table is missing, which a test would have found.
func readPages() library {
	all := library{byName: make(map[string]*Page)}
	sources := split(joined())
	var previous *Page
	for _, s := range sections {
		section := Section{Title: s.title}
		for name := range strings.FieldsSeq(s.pages) {
			// In the order of the table: it is also the order of the links at a page's
			// end.
			text, ok := sources[name]
			if !ok {
				panic("docs: there is no page " + name)
			}
			source := []byte(text)
			p := &Page{Name: name, Section: s.title, Source: text, Previous: previous}
			p.Title, p.Summary = opening(source)
			// On the first request of a page: most of them are never read at a sidecar.
			p.rendered = sync.OnceValue(func() rendered { return render(source) })

			if previous != nil {
				previous.Next = p
			}
			previous = p
			section.Pages = append(section.Pages, p)
			all.byName[name] = p
		}
		all.sections = append(all.sections, section)
	}

	return all
}

// LLMs is llms.txt: an overview of the pages for language models, with links to the Markdown below a base path.
func LLMs(base string) string {
	var b strings.Builder
	b.WriteString("# promptspool\n\n> A durable record of every call to a language model: prompt, answer, " +
		"latency, cost, score, user, and which version of which template. " +
		"One binary: a sidecar beside the app, and a server.\n")
	for _, s := range Sections() {
		fmt.Fprintf(&b, "\n## %s\n\n", s.Title)
		for _, p := range s.Pages {
			fmt.Fprintf(&b, "- [%s](%s/docs/%s.md): %s\n", p.Title, base, p.Name, p.Summary)
		}
	}
	b.WriteString("\n## Optional\n\n- [OpenAPI 3.1](" + base + "/openapi.json): The HTTP API for programs.\n")

	return b.String()
}

// pictureFiles are what pages show. `make screenshots` takes them, except the drawings.
//
//go:embed pictures
var pictureFiles embed.FS

// Pictures are the files that pages show, by their names.
var Pictures = func() fs.FS {
	files, err := fs.Sub(pictureFiles, "pictures")
	if err != nil {
		panic("docs: " + err.Error())
	}
	return files
}()

// openAPIFile is openapi.json, which package openapi makes, in a tenth of its bytes; that package's tests
// keep both up to date.
//
//go:embed openapi.json.zst
var openAPIFile []byte

// openAPI is the description.
var openAPI = packed.Text(openAPIFile)

// OpenAPI is the description of the HTTP API as JSON, for a version of the program.
//
// server is the address at which the API is called; "" is where the description was read.
func OpenAPI(version, server string) string {
	own := strings.NewReplacer(
		`"version": "VERSION"`, `"version": `+strconv.Quote(version),
		`"url": "/"`, `"url": `+strconv.Quote(cmp.Or(server, "/")),
	)
	return own.Replace(openAPI())
}
