// Package docs is the documentation that travels with the binary: Markdown pages, readable in the repository and in a
// terminal as they are, and rendered here for a browser.
//
// A page begins with its title and a first paragraph that says which question it answers; lists of pages show both.
package docs

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"html"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

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
	{"Templates", "templates templates-ci experiments"},
	{"Find and count", "search filter be-told mcp"},
	{"Operate", "production deploy people projects oidc access reverse-proxy kubernetes postgresql citus scale " +
		"backup upgrade alerts webhooks troubleshooting"},
	{"Reference", "commands configuration metrics opentelemetry-requests opentelemetry-attributes limits security"},
	{"HTTP API", "api api-log api-opentelemetry api-templates api-find api-alerts api-targets api-sidecars " +
		"api-objects"},
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

// The addresses that examples are written with: the defaults of server and sidecar.
const (
	ServerAddress  = "http://127.0.0.1:8788"
	SidecarAddress = "http://127.0.0.1:8787"
)

// In rendered examples each address is one byte that no page has, until the reader's own is known.
const (
	serverMark  = "\x01"
	sidecarMark = "\x02"
)

var marked = strings.NewReplacer(ServerAddress, serverMark, SidecarAddress, sidecarMark)

// markdown is safe for concurrent use.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Table),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(&blocks{}, 100))),
)

// HTML returns the page with the reader's addresses in its examples.
func (p *Page) HTML(server, sidecar string) string {
	own := strings.NewReplacer(serverMark, html.EscapeString(server), sidecarMark, html.EscapeString(sidecar))

	return own.Replace(p.rendered().html)
}

// Headings lists the page's sections.
func (p *Page) Headings() []Heading { return p.rendered().headings }

// Heading is where a section of a page begins.
type Heading struct{ Title, Anchor string }

// rendered is a page for a browser.
type rendered struct {
	html     string
	headings []Heading
}

// aroundTables lets wide tables scroll by themselves, also by keyboard.
var aroundTables = strings.NewReplacer(
	"<table>", `<div class="scroll" tabindex="0" role="group" aria-label="A table"><table>`,
	"</table>", "</table></div>",
)

func render(source []byte) (r rendered) {
	document := parse(source)
	for _, h := range collect[*ast.Heading](document) {
		if h.Level == 2 {
			r.headings = append(r.headings, Heading{strings.ReplaceAll(plain(h, source), "`", ""), idOf(h)})
		}
	}

	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, source, document); err != nil {
		panic("docs: " + err.Error()) // a Buffer takes everything
	}

	r.html = aroundTables.Replace(b.String())

	return r
}

// idOf returns the id that a heading got when it was parsed.
func idOf(h *ast.Heading) string {
	id, _ := h.AttributeString("id")
	name, _ := id.([]byte)

	return string(name)
}

// parse reads a page, and points its links to where the binary serves them.
func parse(source []byte) ast.Node {
	document := markdown.Parser().Parse(text.NewReader(source))
	for _, link := range collect[*ast.Link](document) {
		link.Destination = []byte(servedAt(string(link.Destination)))
		// A link that leads nowhere is worse than its text alone.
		if len(link.Destination) == 0 {
			unlink(link)
		}
	}
	for _, image := range collect[*ast.Image](document) {
		image.Destination = append([]byte("/docs/"), image.Destination...)
	}

	return document
}

// servedAt is the address of a link's destination; "" for a file of the repository, which the binary does not serve.
func servedAt(destination string) string {
	file, anchor, _ := strings.Cut(destination, "#")
	switch {
	case file == "" || strings.Contains(file, "://"):
		return destination
	// Pages link to each other's files, so that they also work in the repository.
	case path.Ext(file) == ".md" && !strings.Contains(file, "/"):
		address := "/docs/" + strings.TrimSuffix(file, ".md")
		if anchor != "" {
			address += "#" + anchor
		}
		return address
	default:
		return ""
	}
}

// unlink puts a link's text in its place.
func unlink(link *ast.Link) {
	parent := link.Parent()
	for child := link.FirstChild(); child != nil; child = link.FirstChild() {
		parent.InsertBefore(parent, link, child)
	}
	parent.RemoveChild(parent, link)
}

// collect returns the nodes of a kind, in their order.
func collect[N ast.Node](document ast.Node) (all []N) {
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if found, ok := n.(N); ok && entering {
			all = append(all, found)
		}
		return ast.WalkContinue, nil
	})

	return all
}

// blocks renders what pages have beyond plain Markdown: anchors on headings, pictures, and examples that can be copied.
type blocks struct{}

// RegisterFuncs is goldmark's way to ask who renders what.
func (b *blocks) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHeading, b.heading)
	r.Register(ast.KindFencedCodeBlock, b.example)
	r.Register(ast.KindHTMLBlock, b.comment)
	r.Register(ast.KindImage, b.picture)
}

func (b *blocks) heading(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	h := n.(*ast.Heading)
	name := idOf(h)
	switch {
	case entering:
		fmt.Fprintf(w, `<h%d id="%s">`, h.Level, name)
	case h.Level == 1:
		fmt.Fprint(w, "</h1>\n")
	default:
		fmt.Fprintf(w, ` <a class="anchor" href="#%s" aria-label="Link to this section">#</a></h%d>`+"\n",
			name, h.Level)
	}

	return ast.WalkContinue, nil
}

// example renders a fenced code block. Its id is the place where it begins.
func (b *blocks) example(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}

	code := html.EscapeString(string(n.Lines().Value(source)))

	// A proxy calls the server itself, not the address at which readers find it behind the proxy.
	if block := n.(*ast.FencedCodeBlock); string(block.Language(source)) != "nginx" {
		code = marked.Replace(code)
	}

	id := fmt.Sprintf("example-%d", n.Lines().At(0).Start)
	fmt.Fprintf(w, `<div class="example"><pre id="%s" tabindex="0">%s</pre>`, id, code)
	fmt.Fprintf(w, `<button type="button" data-copy="%s">Copy</button></div>`+"\n", id)

	return ast.WalkSkipChildren, nil
}

// picture renders a picture, with a link to itself: on a phone it is too small to read. Its text is
// for those who do not see it.
func (b *blocks) picture(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		at := html.EscapeString(string(n.(*ast.Image).Destination))
		fmt.Fprintf(w, `<a class="screen" href="%s"><img src="%s" alt="%s" loading="lazy"></a>`, at, at,
			html.EscapeString(plain(n, source)))
	}

	return ast.WalkSkipChildren, nil
}

// comment leaves comments out. Pages have no other HTML.
func (b *blocks) comment(util.BufWriter, []byte, ast.Node, bool) (ast.WalkStatus, error) {
	return ast.WalkSkipChildren, nil
}

// plain is a node's text without markup; code keeps its backticks.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.CodeSpan:
			b.WriteByte('`')
		case *ast.AutoLink:
			if entering {
				b.Write(n.URL(source))
			}
		case *ast.FencedCodeBlock:
			if entering {
				b.Write(n.Lines().Value(source))
			}
		case *ast.Text:
			if entering {
				b.Write(n.Segment.Value(source))
				if n.SoftLineBreak() || n.HardLineBreak() {
					b.WriteByte(' ')
				}
			}
		}
		// Items and cells do not run into each other.
		if n.Type() == ast.TypeBlock && !entering {
			b.WriteByte(' ')
		}
		return ast.WalkContinue, nil
	})

	return strings.TrimSpace(b.String())
}

// opening is a page's title and its first paragraph.
func opening(source []byte) (title, summary string) {
	for block := parse(source).FirstChild(); block != nil; block = block.NextSibling() {
		switch block := block.(type) {
		case *ast.Heading:
			if title == "" {
				title = strings.ReplaceAll(plain(block, source), "`", "")
			}
		case *ast.Paragraph:
			return title, strings.ReplaceAll(plain(block, source), "`", "")
		}
	}

	return title, ""
}
