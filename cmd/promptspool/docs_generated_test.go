package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/dustin/go-humanize/english"
	dto "github.com/prometheus/client_model/go"
	"github.com/urfave/cli/v2"
	"go.yaml.in/yaml/v3"

	"promptspool/api/access"
	"promptspool/api/dashboard"
	"promptspool/api/filterline"
	"promptspool/api/wire"
	"promptspool/metrics"
)

// docsFolder holds the pages of the documentation.
const docsFolder = "../../api/dashboard/docs/"

// TestGeneratedPagesFollowTheCode fails when a page lists other commands, flags, metrics
// or alerts than the program has. `go test ./cmd/promptspool -run GeneratedPages -update`
// writes the lists anew.
func TestGeneratedPagesFollowTheCode(t *testing.T) {
	withoutVariables(t)
	for _, part := range []struct{ page, name, text string }{
		{"commands", "commands", commandsText()},
		{"configuration", "flags", flagsText()},
		{"metrics", "metrics", metricsText(t)},
		{"alerts", "alerts", alertsText(t)},
		{"filter", "fields", fieldsTable(true)},
		{"filter", "fields-of-sessions", fieldsTable(false)},
		{"access", "access", accessText()},
	} {
		path := docsFolder + part.page + ".md"
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		begin, end := "<!-- generated: "+part.name+" -->\n\n", "\n<!-- end -->"
		before, rest, ok := strings.Cut(string(content), begin)
		_, after, ended := strings.Cut(rest, end)
		if !ok || !ended {
			t.Fatalf("%s has no place for the generated %s", path, part.name)
		}

		want := before + begin + part.text + end + after
		switch {
		case want == string(content):
		case *update:
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("%s differs from the code; run this test with -update", path)
		}
	}
}

// TestGeneratedPagesMakeTheManual fails when what `man promptspool` shows is older than the page.
func TestGeneratedPagesMakeTheManual(t *testing.T) {
	withoutVariables(t)
	page, err := os.ReadFile(docsFolder + "commands.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n\n")
	for _, change := range []struct{ of, to string }{
		{`(?m)^(<!--.*-->|\| Flag \|.*|\|---.*)\n`, ""},
		{`\[([^\]]*)\]\(#[^)]*\)`, "$1"},
		{`(?m)^## (.*)`, "# $1"},
		// Links lead nowhere on a terminal, and md2man drops code in their text.
		{`\[([^\]]*)\]\(([a-z-]+)\.md[^)]*\)`, "$1 (see `promptspool docs $2`)"},
		// A table is too wide for most terminals.
		{"(?m)^\\| (`--.*?`) \\|  \\| (.*) \\|$", "$1\n: $2\n"},
		{"(?m)^\\| (`--.*?`) \\| (.*?) \\| (.*)\\. \\|$", "$1\n: $3 (default: $2).\n"},
		{`\\\|`, "|"},
	} {
		text = regexp.MustCompile(change.of).ReplaceAllString(text, change.to)
	}
	want := md2man.Render([]byte("% PROMPTSPOOL 1\n\n# NAME\n\npromptspool \\- " +
		newApp(&strings.Builder{}, &strings.Builder{}).Usage + "\n\n# DESCRIPTION\n\n" + text))

	if bytes.Contains(want, []byte(`\[la]`)) {
		t.Error("the manual has links, which lead nowhere on a terminal")
	}

	const path = "deploy/release/promptspool.1"
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s differs from the page of commands (%v); run this test with -update", path, err)
	}
}

// accessText lists who may do what.
func accessText() string {
	var b strings.Builder
	b.WriteString("| What | Key's scope | Role | Requests | Commands |\n|---|---|---|---|---|\n")
	for _, e := range access.Table {
		scope, role := english.WordSeries(e.Scope.Names(), "or"), string(e.Role)
		switch {
		case e.Scope == wire.ScopeFull:
			scope = "any"
		case e.Operator:
			role = "who may read the data folder"
		case role == "" && e.Pages != "":
			role = "anybody"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", e.Does, cmp.Or(scope, "–"), cmp.Or(role, "–"),
			strings.ReplaceAll(e.Routes, " ", ", "), e.Commands)
	}

	return b.String()
}

// TestEveryCommandIsInTheTableOfAccess also fails for an entry without a command or a page.
func TestEveryCommandIsInTheTableOfAccess(t *testing.T) {
	var commands, pages []string
	for _, e := range access.Table {
		commands = append(commands, access.List(e.Commands)...)
		pages = append(pages, access.List(e.Pages)...)
	}

	all := allCommands()
	for name := range all {
		if !slices.Contains(commands, strings.TrimPrefix(name, "promptspool ")) {
			t.Errorf("the table of access has no command %q", name)
		}
	}
	for _, name := range commands {
		if all[name] == nil && all["promptspool "+name] == nil {
			t.Errorf("the table of access has %q, which is no command", name)
		}
	}
	for _, r := range dashboard.Routes() {
		pages = slices.DeleteFunc(pages, func(pattern string) bool { return pattern == r.Pattern })
	}
	if len(pages) > 0 {
		t.Errorf("the table of access has pages that do not exist: %q", pages)
	}
}

// allCommands returns the commands that do something, by their full names.
func allCommands() map[string]*cli.Command {
	all := map[string]*cli.Command{}
	for _, c := range commandsInOrder() {
		all[c.HelpName] = c
	}
	return all
}

// commandsInOrder returns the commands that do something, in the table's order, with
// their full names as HelpName.
func commandsInOrder() (all []*cli.Command) {
	var add func(prefix string, commands []*cli.Command)
	add = func(prefix string, commands []*cli.Command) {
		for _, c := range commands {
			if len(c.Subcommands) > 0 {
				add(prefix+c.Name+" ", c.Subcommands)
				continue
			}
			c.HelpName = prefix + c.Name
			all = append(all, c)
		}
	}
	add("", newApp(&strings.Builder{}, &strings.Builder{}).Commands)
	return all
}

// sharedFlags are the groups of flags that many commands have, which the page lists once: as
// they are of one command.
var sharedFlags = []struct{ group, title, explained, of string }{
	{
		"Server", "Flags for asking a server",
		"No command needs them after `promptspool login`, or with `PROMPTSPOOL_URL` and `PROMPTSPOOL_KEY` set.",
		"requests search",
	},
	{
		"Filter", "Flags of a filter",
		"They narrow down what a command counts, lists or writes. All that are given must hold.", "requests search",
	},
	{
		"Output", "Flags of the output",
		"A command has those that fit what it prints; only lists have `--columns`. `--json` and `--jq` need no " +
			"`--output`: `--jq` alone gets what `--output json` prints.", "requests search",
	},
}

// commandsText lists each command with its flags.
func commandsText() string {
	var b strings.Builder
	commands := allCommands()
	linked := map[string]string{} // the rows that are listed once, with links to where
	for _, shared := range sharedFlags {
		fmt.Fprintf(&b, "## %s\n\n%s\n\n| Flag | Default | Meaning |\n|---|---|---|\n", shared.title, shared.explained)
		link := "[" + strings.ToLower(shared.title[:1]) + shared.title[1:] + "](#" +
			strings.ReplaceAll(strings.ToLower(shared.title), " ", "-") + ")"
		for _, f := range commands[shared.of].Flags {
			if f.(cli.CategorizableFlag).GetCategory() == shared.group {
				b.WriteString(flagRow(f))
				linked[flagRow(f)] = link
			}
		}
		b.WriteString("\n")
	}

	for _, c := range commandsInOrder() {
		fmt.Fprintf(&b, "## %s\n\n%s\n\n```text\npromptspool %s\n```\n\n", c.HelpName, sentence(c.Usage), usageOf(c))
		fmt.Fprintf(&b, "```sh shown (of a command)\n%s\n```\n\n",
			strings.Join(examplesOf(c, "promptspool "+c.HelpName), "\n"))
		b.WriteString(ownFlags(c, linked))
	}

	return strings.TrimSuffix(b.String(), "\n")
}

// ownFlags is a table of a command's flags, and links to where the others are listed.
func ownFlags(c *cli.Command, linked map[string]string) string {
	var rows, links []string
	for _, f := range c.Flags {
		switch link := linked[flagRow(f)]; {
		case link == "":
			rows = append(rows, flagRow(f))
		case !slices.Contains(links, link):
			links = append(links, link)
		}
	}

	var b strings.Builder
	if len(rows) > 0 {
		b.WriteString("| Flag | Default | Meaning |\n|---|---|---|\n" + strings.Join(rows, "") + "\n")
	}
	if len(links) > 0 {
		slices.Sort(links)
		also := "Also the "
		if len(rows) == 0 {
			also = "It has the "
		}
		b.WriteString(also + english.WordSeries(links, "and") + ".\n\n")
	}

	return b.String()
}

// flagRow is a flag's row of a table.
func flagRow(f cli.Flag) string {
	flag := documented(f)
	return fmt.Sprintf("| %s | %s | %s |\n", flag.name, flag.fallback, flag.usage)
}

// flagsText is a table of the roles' flags, each once, with the roles that have it.
func flagsText() string {
	commands := allCommands()
	type row struct {
		documentedFlag
		roles []string
	}
	rows := map[string]*row{}
	var order []string
	for _, role := range roles {
		for _, f := range commands[role].Flags {
			flag := documented(f)
			key := flag.name + flag.fallback
			if rows[key] == nil {
				rows[key] = &row{documentedFlag: flag}
				order = append(order, key)
			}
			rows[key].roles = append(rows[key].roles, role)
		}
	}
	slices.Sort(order)

	var b strings.Builder
	b.WriteString("| Flag | Role | Default | Meaning |\n|---|---|---|---|\n")
	for _, key := range order {
		r := rows[key]
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.name, strings.Join(r.roles, ", "), r.fallback, r.usage)
	}
	return b.String()
}

// documentedFlag is a flag as a table shows it.
type documentedFlag struct{ name, fallback, usage string }

func documented(f cli.Flag) documentedFlag {
	doc := f.(cli.DocGenerationFlag)
	flag := documentedFlag{name: "`--" + f.Names()[0] + "`", usage: inCell(withoutPlaceholder(doc.GetUsage()))}
	switch name := f.Names()[0]; {
	case name == "name" && len(doc.GetDefaultText()) > 0 && strings.HasPrefix(doc.GetUsage(), "this process's"):
		flag.fallback = "the host's name"
	case !doc.TakesValue() || doc.GetDefaultText() == "":
	default:
		flag.fallback = "`" + doc.GetDefaultText() + "`"
	}
	return flag
}

// placeholder is the word of a usage text that stands for the value.
var placeholder = regexp.MustCompile("`([^` ]+)`")

// withoutPlaceholder takes the backticks off the first word in them, which is how the
// library marks it.
func withoutPlaceholder(usage string) string {
	at := placeholder.FindStringSubmatchIndex(usage)
	if at == nil {
		return usage
	}
	return usage[:at[0]] + usage[at[2]:at[3]] + usage[at[1]:]
}

// inCell is a sentence without a bar, which would end a table's cell.
func inCell(text string) string { return sentence(strings.ReplaceAll(text, "|", `\|`)) }

// metricsText is a table of all metrics, with the roles that export them.
func metricsText(t *testing.T) string {
	t.Helper()
	type row struct {
		family *dto.MetricFamily
		roles  []string
	}
	rows := map[string]*row{}
	for _, role := range []string{"sidecar", "server"} {
		m := metrics.New(role, "test")
		m.HTTPRequests.WithLabelValues("track-request", "200")
		m.HTTPSeconds.WithLabelValues("track-request")
		if role == "server" {
			m.Registry.MustRegister(someUsage(t))
		}
		families, err := m.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if !strings.HasPrefix(f.GetName(), "promptspool_") && !strings.HasPrefix(f.GetName(), "gen_ai_") {
				continue
			}
			if rows[f.GetName()] == nil {
				rows[f.GetName()] = &row{family: f}
			}
			rows[f.GetName()].roles = append(rows[f.GetName()].roles, role)
		}
	}

	var b strings.Builder
	b.WriteString("| Metric | Role | Type | Meaning |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		r := rows[name]
		kind := strings.ToLower(r.family.GetType().String())
		fmt.Fprintf(&b, "| `%s%s` | %s | %s | %s |\n", name, labelsOf(r.family), strings.Join(r.roles, ", "), kind,
			inCell(strings.TrimSuffix(r.family.GetHelp(), ".")))
	}
	return b.String()
}

// someUsage has a value of each metric of usage.
func someUsage(t *testing.T) *metrics.Usage {
	t.Helper()
	usage, err := metrics.NewUsage(nil, metrics.UsageSeriesDefault)
	if err != nil {
		t.Fatal(err)
	}
	var c metrics.UsedCall
	c.Of[metrics.UsedRequests] = 1
	usage.Count("p", c)
	usage.Correct("p", c, metrics.UsedCall{})
	usage.Name("p", "shop")
	return usage
}

// labelsOf are the names of a metric's labels in braces.
func labelsOf(f *dto.MetricFamily) string {
	var names []string
	for _, label := range f.GetMetric()[0].GetLabel() {
		names = append(names, label.GetName())
	}
	if names == nil {
		return ""
	}
	return "{" + strings.Join(names, ",") + "}"
}

// alertsText is a table of the alerts, each with a link to its entry.
func alertsText(t *testing.T) string {
	t.Helper()
	var file struct {
		Spec struct {
			Groups []struct {
				Rules []struct {
					Alert, For          string
					Labels, Annotations map[string]string
				}
			}
		}
	}
	text, err := os.ReadFile("deploy/kubernetes/monitoring/prometheusrule.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &file)
	}
	if err != nil {
		t.Fatal(err)
	}

	var b strings.Builder
	b.WriteString("| Alert | Severity | Fires when | For at least |\n|---|---|---|---|\n")
	for _, r := range file.Spec.Groups[0].Rules {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s | %s |\n",
			r.Alert, strings.ToLower(r.Alert), r.Labels["severity"], r.Annotations["summary"], r.For)
	}
	return b.String()
}

// fieldsTable is a table of what a filter line can ask for: of calls, or of sessions, traces and users only.
func fieldsTable(ofCalls bool) string {
	kinds := map[filterline.Kind]string{
		filterline.Text: "text", filterline.Content: "words, or `*part*`", filterline.Number: "number",
		filterline.Template: "name, `name@version` or `name@label`", filterline.Duration: "`500ms`, `2s`, `1m30s`",
		filterline.Time: "time", filterline.Score: "number or text",
	}

	var b strings.Builder
	b.WriteString("| Key | Values | Meaning | Example | In the JSON filter |\n|---|---|---|---|---|\n")
	for i := range filterline.Fields {
		f := &filterline.Fields[i]
		if !f.Listed() || f.IsOfCalls() != ofCalls {
			continue
		}
		values := kinds[f.Kind]
		if f.Values != nil {
			values = "`" + strings.Join(f.Values, "`, `") + "`"
		}
		inJSON := "`" + f.JSON + "`"
		if f.JSON == "" {
			inJSON = "`is_` and the value"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | `%s` | %s |\n", f.Title(), values, inCell(f.Help), f.Example, inJSON)
	}
	return b.String()
}
