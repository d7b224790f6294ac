package docs

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	"promptspool/api/wire/packed/packedtest"
)

// top is the top folder of the repository.
const top = "../../.."

var update = flag.Bool("update", false, "pack the pages anew")

func TestThePackedPagesAreTheFiles(t *testing.T) {
	found, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range found {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(pageMark + strings.TrimSuffix(file, ".md") + "\n" + string(source))
	}

	packedtest.Check(t, "pages.zst", all.String(), *update)
	// The binary of these tests has the pages of before, and none that is new. The others read the files.
	joined = func() string { return all.String() }
}

func TestEveryFileIsListedAndBeginsWithItsQuestion(t *testing.T) {
	found, err := filepath.Glob("*.md")
	if err != nil || len(found) < 20 {
		t.Fatal(found, err)
	}
	for _, file := range found {
		p := Find(strings.TrimSuffix(file, ".md"))
		switch {
		case p == nil:
			t.Errorf("%s is not listed in any section", file)
		case p.Title == "" || len(p.Summary) < 30 || !strings.HasPrefix(p.Source, "# "+p.Title+"\n"):
			t.Errorf("%s begins with %q, then %q", file, p.Title, p.Summary)
		}
	}
	if len(Names()) != len(found) {
		t.Errorf("%d pages are listed, want one for each of %d files", len(Names()), len(found))
	}

	if next := Find("tutorial").Next; next == nil || next.Previous != Find("tutorial") ||
		Find("tutorial").Previous != nil {
		t.Error("the pages are not in order")
	}
}

// sources returns all pages and the README by their paths in the repository.
func sources(t *testing.T) map[string][]byte {
	t.Helper()
	all := make(map[string][]byte)
	for _, name := range Names() {
		all["api/dashboard/docs/"+name+".md"] = []byte(Find(name).Source)
	}
	readme, err := os.ReadFile(filepath.Join(top, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	all["README.md"] = readme

	return all
}

// destinations returns the links and images of a text as written.
func destinations(source []byte) (all []string) {
	document := markdown.Parser().Parse(text.NewReader(source))
	for _, link := range collect[*ast.Link](document) {
		all = append(all, string(link.Destination))
	}
	for _, image := range collect[*ast.Image](document) {
		all = append(all, string(image.Destination))
	}
	return all
}

func TestEveryLinkLeadsSomewhere(t *testing.T) {
	anchors := make(map[string]string) // the HTML of each text by its path
	for place, source := range sources(t) {
		anchors[place] = render(source).html
	}

	links := 0
	for place, source := range sources(t) {
		for _, destination := range destinations(source) {
			links++

			file, anchor, _ := strings.Cut(destination, "#")
			if strings.Contains(file, "://") {
				if !strings.HasPrefix(file, "https://") {
					t.Errorf("%s links to %s", place, destination)
				}
				continue
			}

			at := place
			if file != "" {
				at = filepath.Join(filepath.Dir(place), file)
			}
			if _, err := os.Stat(filepath.Join(top, at)); err != nil {
				t.Errorf("%s links to %s: %v", place, destination, err)
			} else if anchor != "" && !strings.Contains(anchors[at], ` id="`+anchor+`"`) {
				t.Errorf("%s links to %s, a heading that does not exist", place, destination)
			}
		}
	}
	if links < 50 {
		t.Errorf("only %d links were found, want at least 50", links)
	}
}

func TestPicturesAreSmallAndShown(t *testing.T) {
	var all strings.Builder
	for _, source := range sources(t) {
		all.Write(source)
	}
	files, err := fs.ReadDir(Pictures, ".")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}

	total := int64(0)
	for _, file := range files {
		info, err := file.Info()
		if err != nil {
			t.Fatal(err)
		}
		if total += info.Size(); info.Size() > pictureBytesMax {
			t.Errorf("%s has %d bytes, at most %d", file.Name(), info.Size(), pictureBytesMax)
		}
		if !strings.Contains(all.String(), "](pictures/"+file.Name()+")") {
			t.Errorf("no page shows %s", file.Name())
		}
	}
	if total > picturesBytesMax {
		t.Errorf("all pictures have %d bytes, at most %d", total, picturesBytesMax)
	}
}

// The binary carries all pictures.
const (
	pictureBytesMax  = 45 << 10
	picturesBytesMax = 400 << 10
)

func TestASearchFindsThePageOfAPlainQuestion(t *testing.T) {
	for query, want := range map[string]string{
		"port in use": "troubleshooting", "setup code lost": "people", "how do I upgrade": "upgrade",
		"--spool-bytes-max": "configuration", "streaming python": "log-python", "jinja": "templates",
		"CREATE ROLE": "postgresql", "citus workers": "citus", "idempotency": "api-log",
		"production on two machines": "production", "let an agent read logs": "mcp",
		"evaluate a prompt in CI": "experiments", "verify a webhook signature": "webhooks",
		"alert when cost rises": "be-told",
	} {
		hits := Search(query)
		found := slices.IndexFunc(hits, func(h Hit) bool { return h.Page.Name == want })
		if found < 0 || found > 3 {
			t.Errorf("%q finds %s at %d of %d", query, want, found, len(hits))
		}
	}
}

func TestAHitLeadsToItsSectionAndShowsTheWords(t *testing.T) {
	hits := Search("Kubernetes OTLP listen")
	if len(hits) == 0 || len(hits) > hitsMax {
		t.Fatalf("%d hits", len(hits))
	}
	for _, h := range hits {
		if h.Anchor != "" && !strings.Contains(h.Page.HTML("", ""), ` id="`+h.Anchor+`"`) {
			t.Errorf("%s has no section %s", h.Page.Name, h.Anchor)
		}
		excerpt := strings.ToLower(h.Excerpt)
		if !strings.Contains(excerpt, "otlp") && !strings.Contains(excerpt, "kubernetes") {
			t.Errorf("the excerpt of %s has none of the words: %s", h.Page.Name, h.Excerpt)
		}
	}

	for _, query := range []string{"", "  ", strings.Repeat("x", 1000), "\xff\x00", "\u0130\u0130\u0130", "qqqxyz"} {
		if hits := Search(query); len(hits) > 0 {
			t.Errorf("%.20q finds %v", query, hits[0])
		}
	}
}

func TestExamplesShowTheReadersAddress(t *testing.T) {
	got := Find("tutorial").HTML("https://a.example", `http://b"><script>`)
	for _, want := range []string{
		`http://b&#34;&gt;&lt;script&gt;/rest/track-request`,
		`data-copy="example-`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}

	if strings.Contains(got, "<script") || strings.ContainsAny(got, serverMark+sidecarMark) ||
		strings.Contains(got, SidecarAddress) {
		t.Error("an address is not replaced, or not escaped")
	}

	got = Find("search").HTML("https://a.example", "")
	if !strings.Contains(got, "curl -s https://a.example/api/public") {
		t.Error("the examples do not have the server address of the reader")
	}
}

func TestPagesAreReadableInTheRepository(t *testing.T) {
	for place, source := range sources(t) {
		inCode, generated := false, false
		for line := range strings.Lines(string(source)) {
			generated = (generated || strings.HasPrefix(line, "<!-- generated")) &&
				!strings.HasPrefix(line, "<!-- end")
			if strings.HasPrefix(line, "```") {
				inCode = !inCode
			}

			table := strings.HasPrefix(line, "|")
			if n := utf8.RuneCountInString(line); n > 121 && !table && !inCode && !generated {
				t.Errorf("%s: a line of %d columns: %s", place, n, line)
			}
		}
	}
}

// A file that moves must be renamed on the page as well.
func TestTheArchitecturePageNamesFilesThatExist(t *testing.T) {
	named := regexp.MustCompile("`([a-z_]+/[a-z_/]*[a-z_.]+)`")
	files := named.FindAllStringSubmatch(Find("architecture").Source, -1)
	if len(files) < 40 {
		t.Fatalf("only %d files are named, want at least 40", len(files))
	}
	for _, m := range files {
		if _, err := os.Stat(filepath.Join(top, m[1])); err != nil {
			t.Error(err)
		}
	}
}
