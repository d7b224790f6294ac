package frame

import (
	"html/template"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/dashboard/chart"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/number"
	"promptspool/api/dashboard/table"
	"promptspool/api/dashboard/textdiff"
	"promptspool/api/wire"
)

// turn is a message of a conversation, as the component takes it.
type turn struct {
	Role, Name, ToolCallID, Copy, Folded string

	Hit   bool
	Texts []passage
	Tools []toolCall
}

// passage is a text of a turn.
type passage struct {
	Kind, Picture, Link, As, Whole string

	HTML  template.HTML
	Image template.URL
	Long  bool
	Size  int64
	Lines int
	Hits  int
}

// toolCall is a tool that a turn calls.
type toolCall struct {
	Name, ID, Folded string

	passage
}

// components is what the page of all components shows in them.
type components struct {
	filter.Form

	Fault      *wire.Error
	Findings   []struct{ Place, Message string }
	Connection connection
	Unmatched  filter.Form
	Messages   talk
	Answer     turn
	Raw        passage
	Charts     []*chart.Chart
	Counted    Counted
	Diff       comparedRows
	Comparison comparison
	Head       head
	Order      table.Order
	Tree       tree
	Trail      filter.Trail
	Scoring    Scoring
	Choices    []choices
	Shares     []Share
}

// talk is a conversation whose middle is folded.
type talk struct {
	Input                    []turn
	FoldFrom, FoldTo, Folded int
}

// choices is a score to give, as the component takes it.
type choices struct {
	wire.ScoreDefinition

	Given        string
	First, Hints bool
	Choices      []struct{ Value, Text, Key string }
}

// comparison is how two versions differ, as the component takes it.
type comparison struct {
	wire.VersionComparison
	Max  int64
	Rows []comparedRow
}

// comparedRow is a metric of a comparison.
type comparedRow struct {
	wire.ComparedMetric
	Shown        number.Metric
	From, At, To float64
}

func comparedAt(from, at, to float64, m wire.ComparedMetric) comparedRow {
	return comparedRow{ComparedMetric: m, Shown: number.OfMetric(m), From: from, At: at, To: to}
}

// tree is a trace, as the component takes it.
type tree struct {
	AxisFrom, AxisLong *float64
	Rows               []node
}

// node is a span of a trace.
type node struct {
	Name, Icon, Href, Toggle string

	Depth, Indent, Below                                  int
	Folded, Failed, Running, Selected, ParentMissing, Hit bool

	At, Long  float64
	LatencyMS *float64
	Total     wire.TraceTotal
}

// head is that of a template's pages.
type head struct {
	Name, Tab string
	Shown     int
	Labels    []wire.Label
	DeletedAt *time.Time
}

// shownComponents returns the view of the page of all components.
func shownComponents() view {
	v := components{
		Head:       head{Name: "support/triage", Tab: "statistics", Labels: []wire.Label{{Name: "prod", Version: 7}}},
		Order:      table.Read("/", url.Values{"by": {"-cost"}}),
		Form:       filter.Form{Path: "/requests", Range: "last 7 days", Zone: "UTC"},
		Fault:      wire.Invalid(wire.FieldError{Field: "name", Reason: "is taken"}),
		Connection: connection{Unencrypted: true},
		Unmatched:  filter.Form{Path: "/requests"},
		Raw:        passage{HTML: `{"id": 1}`, As: "json", Size: 9},
		Counted:    Counted{Progress: wire.Progress{Incomplete: true}, Everything: "/?all="},
	}
	v.Tree = shownTree()
	v.Trail = filter.Trail{List: "Requests", Back: "/requests", Place: filter.Number{At: 3, Of: 9},
		Previous: filter.Step{Href: "#newer", Text: "Newer"}, Next: filter.Step{Href: "#older", Text: "Older"}}
	v.Scoring = Scoring{
		Scores: []wire.Score{
			wire.IntegerScore("helpful", 80),
			{
				ScoreSlot:  wire.ScoreSlot{Name: "tone", Author: "gpt-4o"},
				ScoreValue: wire.ScoreValue{Kind: wire.ScoreCategory, Text: "rude"},
				Details: &wire.ScoreDetails{Source: "model", AuthorVersion: "2024-08-06",
					Reason: strings.Repeat("It does not greet. ", 10)},
			},
			{
				ScoreSlot:  wire.ScoreSlot{Name: "correct"},
				ScoreValue: wire.ScoreValue{Kind: wire.ScoreBoolean, Number: 1},
			},
			{ScoreSlot: wire.ScoreSlot{Name: "faithfulness"}, ScoreValue: wire.NumberScore(1.2)},
		},
		Defined: wire.ScoreDefinitions{
			{Name: "correct", Kind: "boolean"},
			{Name: "faithfulness", Kind: "number", Min: new(0.0), Max: new(1.0)},
			{Name: "tone", Kind: "category", Categories: []string{"kind", "rude"}},
		},
		Action: "/score",
		Of:     []Field{{"this span", "1"}, {"the trace", ""}},
		Parts:  "scores",
	}
	v.Choices = []choices{
		{
			ScoreDefinition: wire.ScoreDefinition{Name: "tone", Kind: "category", Description: "As customers hear it."},
			Hints:           true,
			Given:           "rude",
			Choices:         []struct{ Value, Text, Key string }{{"kind", "kind", "k"}, {"rude", "rude", "u"}},
		},
		{
			ScoreDefinition: wire.ScoreDefinition{Name: "stars", Kind: "number"},
			Choices:         []struct{ Value, Text, Key string }{{"1", "1", "1"}, {"2", "2", "2"}, {"3", "3", "3"}},
		},
		{ScoreDefinition: wire.ScoreDefinition{Name: "edits", Kind: "number", Min: new(0.0)}},
	}
	v.Shares = Shares(wire.ScoreSum{Kind: "category", Categories: []wire.CategoryCount{
		{Value: "polite", Share: 0.75}, {Value: "curt", Share: 0.25},
	}})
	v.Findings = []struct{ Place, Message string }{
		{"Message 1, line 3, column 5", "the variable name is not closed"},
	}
	v.Messages = talk{FoldFrom: 1, FoldTo: 3, Folded: 2}
	v.Messages.Input, v.Answer = shownTurns()
	v.Charts = shownCharts()
	changed := textdiff.Lines("Hello {name}.\n1\n2\n3\n4\nBe brief.", "Hello {name}.\n1\n2\n3\n4\nBe kind.")
	v.Diff = newComparedRows("Versions", "version 1", "version 2", changed)

	v.Comparison.A = wire.ComparedCalls{Version: 7, Requests: 130}
	v.Comparison.B = wire.ComparedCalls{Version: 8, Requests: 50_000, Progress: wire.Progress{Incomplete: true}}
	v.Comparison.Note = "Version 7 ran from Nov 21 to Nov 28. 33 of its 35 errors are from Nov 22. " +
		"Version 8 ran from Nov 25 to Nov 28. Compared are the calls while both ran, hour by hour."
	v.Comparison.Rows = []comparedRow{
		comparedAt(60, 78, 96, wire.ComparedMetric{Metric: "score", Name: "helpful", Method: "welch", Verdict: "better",
			CountA: 120, CountB: 480, A: 76.4, B: 82.1, Difference: 5.7, Low: new(2.0), High: new(9.4)}),
		comparedAt(0, 0, 0, wire.ComparedMetric{Metric: "score", Name: "csat", Method: "welch", Verdict: "too_few",
			CountA: 12, A: 80.2, Needed: 50}),
		comparedAt(60, 75, 96, wire.ComparedMetric{Metric: "errors", Method: "newcombe", Verdict: "worse",
			CountA: 130, CountB: 500, A: 0.01, B: 0.06, Difference: 0.05, Low: new(0.019), High: new(0.091)}),
		comparedAt(34, 65, 96, wire.ComparedMetric{Metric: "latency_p50", Method: "bootstrap", Verdict: "no_difference",
			CountA: 130, CountB: 500, A: 0.537, B: 0.567, Difference: 0.03, Low: new(-0.032), High: new(0.092)}),
		comparedAt(4, 25, 46, wire.ComparedMetric{Metric: "tokens", Method: "welch", Verdict: "different",
			CountA: 130, CountB: 500, A: 188, B: 174, Difference: -14, Low: new(-26.0), High: new(-2.0)}),
	}

	return view{
		Title:   "Components",
		Nav:     "requests",
		Notice:  "prod now points to version 5 (was 3).",
		CSRF:    "token",
		User:    &wire.User{Email: "ann@example.com", AccountName: "default", Role: wire.RoleOwner},
		Now:     time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC),
		Base:    "http://localhost:8788",
		CallsTo: "http://localhost:8787",
		Zone:    shownZone{Location: time.UTC},
		Data:    v,
	}
}

// shownTurns returns a conversation with a tool, and its answer.
func shownTurns() (messages []turn, answer turn) {
	order := passage{HTML: `{"order": 1042}`, As: "json"}
	long := passage{HTML: "You answer customers of a shop.", Whole: "/whole", Size: 37888, Lines: 450}
	messages = []turn{
		{Role: "system", Copy: "/copy", Folded: "You answer customers of a shop.", Texts: []passage{long}},
		{Role: "developer", Folded: "Be brief.", Hit: true, Texts: []passage{{HTML: "Be brief."}}},
		{Role: "user", Copy: "/copy", Texts: []passage{{HTML: "Where is my parcel?"}}},
		{Role: "assistant", Tools: []toolCall{{Name: "track_parcel", ID: "call_1", passage: order}}},
		{Role: "assistant", Tools: []toolCall{{Name: "track_parcel", Folded: `{"order": 4711}`, passage: order}}},
		{Role: "tool", ToolCallID: "call_1", Texts: []passage{{HTML: "out for delivery"}}},
	}
	text := passage{HTML: "<p>It arrives <b>today</b>.</p>", As: "prose"}

	return messages, turn{Role: "assistant", Copy: "/copy", Texts: []passage{text}}
}

// shownTree returns a trace that runs, with a span that failed and one that is folded.
func shownTree() tree {
	used := wire.TraceTotal{InputTokens: new(int64(1200)), Price: new(0.012), Errors: 1}

	return tree{nil, new(4400.0), []node{
		{Name: "Answer a customer", Icon: "bot", Toggle: "#", Running: true, Long: 100, Total: used},
		{Name: "chat gpt-5-mini", Icon: "message-square", Depth: 1, Indent: 1, Long: 40, LatencyMS: new(1760.0),
			Total: used, Failed: true, Selected: true},
		{Name: "Look it up", Icon: "workflow", Toggle: "#", Depth: 1, Indent: 1, At: 40, Long: 20,
			Folded: true, Below: 12},
		{Name: "track_parcel", Icon: "wrench", Depth: 1, Indent: 1, At: 60, Long: 5, ParentMissing: true},
	}}
}

// shownCharts returns a chart of bars and one of lines.
func shownCharts() []*chart.Chart {
	return []*chart.Chart{
		{
			Title:   "Requests",
			Names:   []string{"succeeded", "failed"},
			Classes: map[int]string{1: "c-bad"},
			Format:  number.Count,
			Bars:    true,
			Bucket:  time.Hour,
			Points:  hours([]float64{9, 1}, []float64{12, 0}, []float64{7, 3}, []float64{10, 0}),
		},
		{
			Title:  "Latency",
			Names:  []string{"p50", "p95"},
			Format: number.Seconds,
			Time:   true,
			Bucket: time.Hour,
			Points: hours([]float64{0.8, 2}, []float64{0.9, 2.4}, []float64{0.7, 1.9}, []float64{0.8, 3}),
		},
	}
}

// The page of all components is kept as it is shown, so that the scenes look at it in a browser.
func TestEveryComponentIsOnThePageOfAllComponents(t *testing.T) {
	page := template.Must(newLayout().ParseFiles("testdata/components.html"))
	var shown strings.Builder
	if err := page.ExecuteTemplate(&shown, "layout", shownComponents()); err != nil {
		t.Fatal(err)
	}

	const path = "testdata/components-shown.html"
	if *update {
		if err := os.WriteFile(path, []byte(shown.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), shown.String()); diff != "" {
		t.Errorf("the page differs; if that is intended, run with -update (-want +got):\n%s", diff)
	}

	defined, called := regexp.MustCompile(`{{define "([^"]+)"`), regexp.MustCompile(`{{template "([^"]+)"`)
	used := map[string]bool{"tools": true} // what a page adds to the filter's row
	for name, source := range sources(t) {
		if strings.HasPrefix(name, "components/") || strings.HasSuffix(name, "/layout.html") {
			for _, call := range called.FindAllStringSubmatch(source, -1) {
				used[call[1]] = true
			}
		}
	}
	source, err := os.ReadFile("testdata/components.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range called.FindAllStringSubmatch(string(source), -1) {
		used[call[1]] = true
	}
	for name, source := range sources(t) {
		if !strings.HasPrefix(name, "components/") {
			continue
		}
		for _, component := range defined.FindAllStringSubmatch(source, -1) {
			if !used[component[1]] {
				t.Errorf("%s: %s is not on the page of all components", name, component[1])
			}
		}
	}
}

// A rule for a class that no page has is left from something that is gone.
func TestEveryStyleIsOfSomethingThatPagesHave(t *testing.T) {
	var text strings.Builder
	for _, source := range sources(t) {
		text.WriteString(source)
	}
	for _, pattern := range []string{"*.go", "../*/*.go", "../*.go", "static/*.js"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(names), err)
		}
		for _, name := range names {
			source, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(name, "_test.go") {
				text.Write(source)
			}
		}
	}
	words := map[string]bool{}
	for _, word := range regexp.MustCompile(`[a-z][a-z0-9-]*`).FindAllString(text.String(), -1) {
		words[word] = true
	}

	style, err := os.ReadFile("static/style.css")
	if err != nil {
		t.Fatal(err)
	}
	rules := regexp.MustCompile(`(?s)/\*.*?\*/|{[^{}]*}`).ReplaceAllString(string(style), "")
	seen := 0
	for _, class := range regexp.MustCompile(`\.([a-z][a-z0-9-]*)`).FindAllStringSubmatch(rules, -1) {
		name := class[1]
		seen++
		// A page joins these from two parts.
		joined := strings.HasPrefix(name, "c-") || strings.HasPrefix(name, "is-") ||
			strings.ContainsAny(name, "12345678")
		if !joined && !words[name] {
			t.Errorf("no page has the class %q of the style sheet", name)
		}
	}
	if seen < 100 {
		t.Errorf("the style sheet has %d classes", seen)
	}
}
