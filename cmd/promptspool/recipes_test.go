package main

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// recipes are the recipes of the page Architecture, each with an example that was added by
// it: the files that name the example are those that the recipe names.
var recipes = []struct {
	heading string
	example string // what only this one is called, in all spellings
	kinds   string // of files that it has besides those of the program
	besides string // files that name it for another reason: "why: regexp" a line
	helps   string // a regexp of files that the recipe names, and that need no change
}{
	{
		heading: "Add a column to records",
		example: `CacheWrite|cache_write_tokens`,
		besides: `how a call is read, which is another recipe: ^api/calls/
			what it costs: ^registry/prices/cost\.go`,
	},
	{
		heading: "Change a format",
		example: `\b(headVersion|takeStep|SummaryForm|FirstColumns|firstOrders|StepBegun)\b|s Filled\)|` +
			`words\.Folding|const Folding|\bFormat = |folder\.Format|\bstep_|From the tables of|` +
			`crashpoint\.(Step|Fill|Renew)`,
		besides: `who asks for the numbers: ^spool/database/(badgerdb|postgres)/\w+\.go
			how a row is read, whatever has changed: ^spool/archive/rowcode/rowcode\.go`,
		helps: `spool/queue/folder\.go`,
	},
	{
		heading: "Add what is kept beside a record",
		example: `State\) Trace\(|\bf\.Trace\b|tableTrace|'j' trace|\bu\.trace\b|&r\.trace,|record_states_traces|` +
			`\bof\.Trace\b|\tTrace +UUID`,
		helps: `spool/(archive/set|database/databasetest/folding)\.go`,
	},
	{
		heading: "Add a route",
		example: `reprice-requests|Reprice|/requests/reprice`,
		besides: `what it does, not how it is called: ^spool/(archive|database/databasetest)/`,
	},
	{
		heading: "Add a flag of both roles",
		example: `[kK]eepPlumbing|keep-plumbing`,
	},
	{
		heading: "Add a command",
		example: `tailRequests|requests tail`,
		helps:   `cmd/promptspool/(main|internal/completion/completion)\.go`,
	},
	{
		heading: "Add a metric",
		example: `DataFree|promptspool_data_free_bytes|PromptspoolDiskNearlyFull`,
		kinds:   ".md .yaml .json",
		besides: `make generate writes it: ^api/dashboard/docs/metrics\.md
			make chart writes it: ^cmd/promptspool/deploy/helm/prometheusrule\.yaml`,
	},
	{
		heading: "Add a dashboard page",
		example: `sidecarsPage|"/sidecars"|<h1 class="hidden">Sidecars`,
		besides: `a notice leads there: ^spool/database/accounts/fleet\.go`,
		helps:   `api/access/access\.go|api/dashboard/(frame/\w+\.go|templates/list\.go|dashboard\.go)`,
	},
	{
		heading: "Add a page of docs",
		example: `coding-agents`,
		kinds:   ".md",
	},
	{
		heading: "Add a provider",
		example: `[cC]ohere`,
		besides: `a dialect of spans, which is another recipe: ^api/otlp/request\.go`,
	},
	{
		heading: "Add a dialect of OpenTelemetry",
		example: `[tT]raceloop|[oO]penLLMetry|openllmetry`,
	},
}

// namedPath is a path in a page, in backticks.
var namedPath = regexp.MustCompile("`((?:api|cmd|metrics|proxy|registry|spool)/[\\w./-]+|README\\.md)`")

// writtenFiles returns the files that a person writes to add something, with their text: not
// tests, and of what is generated only pages and manifests.
func writtenFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	top := os.DirFS("../..")

	err := fs.WalkDir(top, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "e2e" {
				return fs.SkipDir
			}
			return nil
		}
		written := strings.Fields(programKinds + " .md .yaml .json")
		if !slices.Contains(written, path.Ext(name)) || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := fs.ReadFile(top, name)
		files[name] = string(text)

		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// programKinds are the kinds of files of which every recipe names those that it needs.
const programKinds = ".go .html .sql .txt"

// ofKinds returns the files of some kinds.
func ofKinds(files map[string]string, kinds string) map[string]string {
	some := maps.Clone(files)
	maps.DeleteFunc(some, func(name, _ string) bool {
		return !slices.Contains(strings.Fields(kinds), path.Ext(name))
	})
	return some
}

// recipeFaults compares the files that a recipe names with those that name its example.
func recipeFaults(
	files map[string]string, section string, example, helps *regexp.Regexp, besides []*regexp.Regexp,
) (faults []string) {
	var named []string
	for _, m := range namedPath.FindAllStringSubmatch(section, -1) {
		named = append(named, m[1])
		if text, isFile := files[m[1]]; isFile && !example.MatchString(text) && !helps.MatchString(m[1]) {
			faults = append(faults, m[1]+" is named, and has nothing of the example")
		}
	}

	for file, text := range files {
		known := slices.Contains(named, file) || slices.Contains(named, path.Dir(file)) ||
			slices.ContainsFunc(besides, func(b *regexp.Regexp) bool { return b.MatchString(file) })
		if example.MatchString(text) && !known {
			faults = append(faults, file+" has the example, and is not named")
		}
	}
	slices.Sort(faults)

	return faults
}

func TestRecipesNameTheFilesOfTheirExamples(t *testing.T) {
	page, err := os.ReadFile("../../api/dashboard/docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	files := writtenFiles(t)

	for _, r := range recipes {
		_, section, found := strings.Cut(string(page), "\n## "+r.heading+"\n")
		if !found {
			t.Errorf("there is no recipe %q", r.heading)
			continue
		}
		section, _, _ = strings.Cut(section, "\n## ")

		var besides []*regexp.Regexp
		for line := range strings.Lines(r.besides) {
			_, pattern, _ := strings.Cut(strings.TrimSpace(line), ": ")
			besides = append(besides, regexp.MustCompile(pattern))
		}
		helps := regexp.MustCompile("^(" + r.helps + ")$")
		some := ofKinds(files, programKinds+" "+r.kinds)
		for _, fault := range recipeFaults(some, section, regexp.MustCompile(r.example), helps, besides) {
			t.Errorf("%s: %s", r.heading, fault)
		}
	}
}

func TestARecipeThatIsNotFollowedIsNoticed(t *testing.T) {
	files := map[string]string{"api/a.go": "cohere", "api/b.go": "", "api/calls/c.go": "cohere", "api/d.go": "cohere"}
	faults := recipeFaults(files, "1. `api/b.go`\n2. `api/calls`: a file\n", regexp.MustCompile("cohere"),
		regexp.MustCompile("^$"), []*regexp.Regexp{regexp.MustCompile("^api/d")})
	want := []string{"api/a.go has the example, and is not named", "api/b.go is named, and has nothing of the example"}
	if !slices.Equal(faults, want) {
		t.Errorf("%q, not %q", faults, want)
	}
}
