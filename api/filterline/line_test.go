package filterline_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"promptspool/api/filterline"
	"promptspool/api/wire"
)

// read parses a line and compiles it.
func read(text string, clock filterline.Clock) (*wire.Filter, error) {
	line, err := filterline.Parse(text)
	if err != nil {
		return nil, err
	}

	return line.Compile(clock)
}

// Each line of asked.txt is carried out, or refused, as the line below it says.
func TestWhatALineAsksFor(t *testing.T) {
	asked, err := os.ReadFile("testdata/asked.txt")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for line := range strings.Lines(string(asked)) {
		if line[0] != '\t' {
			fmt.Fprintf(&table, "%s\t%s\n", line, carriedOut(t, strings.TrimSuffix(line, "\n")))
		}
	}
	golden(t, "asked.txt", table.String())

	for _, line := range []string{"", " "} {
		if got := carriedOut(t, line); got != "null" {
			t.Errorf("%q is carried out as %s", line, got)
		}
	}
}

// A whole line is printed as it was typed, except for blanks and quotes that are not needed.
func TestALineIsPrintedAsItIsRead(t *testing.T) {
	for line, want := range map[string]string{
		"status:error template:support/triage@3 latency:>2s user:user-42 customer:acme " +
			`"purple elephant" -env:staging since:yesterday`: "",
		` Status:error   "word" tag:"x" `:         "status:error word tag:x",
		`engine:gpt-4o prompt_name:"a b"`:         `model:gpt-4o template:"a b"`,
		`status:( error,"warning"  OR x )`:        "status:(error or warning or x)",
		`tag:("or" or "a,b")`:                     "",
		`"OR" "-x" "a:b" "(x" -"a b"`:             "",
		`metadata.status:x metadata."a b":c`:      "",
		`metadata.person:x score.style:>5 tag:*b`: "person:x score.style:>5 tag:*b",
		`"say \"hi\" \\o/"`:                       "",
		`cost:0.5..1 cost:.5.. time:..2026-11`:    "",
		`refund* *up* "a b"* *"a b"`:              "",
		`a OR b c OR -(d  e OR f)`:                "a OR b c OR -(d e OR f)",
		`(a OR b) -(c) ((d e)) (f)`:               "(a OR b) -(c) d e f",
		`((a OR b))`:                              "a OR b",
		`(a OR b) OR (model:(x or y) z)`:          "(a OR b) OR model:(x or y) z",
		`("f(x)" OR tag:"a)b")`:                   `"f(x)" OR tag:"a)b"`,
	} {
		parsed, err := filterline.Parse(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if want == "" {
			want = line
		}
		if got := parsed.String(); got != want {
			t.Errorf("%s is printed as %s, want %s", line, got, want)
		}
	}
}

func TestALineThatAsksForTooMuchIsRefused(t *testing.T) {
	for _, c := range []struct {
		line   string
		offset int
		reason string
	}{
		{strings.Repeat("tag:a ", filterline.TermsMax) + "x", 600, "more than 100 conditions"},
		{strings.Repeat("template:a@b ", 34), 429, "asks for too much"},
		{"b (" + strings.Repeat("a ", 101) + ")", 199, "more than 100 conditions"},
		{strings.Repeat("a", filterline.RunesMax+1), filterline.RunesMax + 1, "at most 4000"},
		{"é status:", 9, "character 10: a value is missing"},
	} {
		_, err := read(c.line, clock)
		if err == nil {
			t.Errorf("%s is accepted", c.line)
			continue
		}
		if e := faultOf(t, err); *e.Offset != c.offset || !strings.Contains(e.Reason, c.reason) {
			t.Errorf("%s: at %d %q, want %d %q", c.line, *e.Offset, e.Reason, c.offset, c.reason)
		}
	}
}

// The days of a line are those of its reader.
func TestTheTimesOfALine(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 10, 26, 9, 30, 0, 0, time.UTC) // the Monday after summer time ended

	for line, want := range map[string]string{
		"since:yesterday":                   "gte 2026-10-24T22:00:00Z", // 25 hours long
		"before:yesterday":                  "lt 2026-10-24T22:00:00Z",
		"after:yesterday":                   "gte 2026-10-25T23:00:00Z",
		"until:yesterday":                   "lt 2026-10-25T23:00:00Z",
		"time:yesterday":                    "gte 2026-10-24T22:00:00Z lt 2026-10-25T23:00:00Z",
		"time:today":                        "gte 2026-10-25T23:00:00Z lt 2026-10-26T23:00:00Z",
		"since:this-week":                   "gte 2026-10-25T23:00:00Z",
		"time:Last-Week":                    "gte 2026-10-18T22:00:00Z lt 2026-10-25T23:00:00Z",
		"since:this-month":                  "gte 2026-09-30T22:00:00Z",
		"before:last-month":                 "lt 2026-08-31T22:00:00Z",
		"time:2026-02":                      "gte 2026-01-31T23:00:00Z lt 2026-02-28T23:00:00Z",
		"since:2h":                          "gte 2026-10-26T07:30:00Z",
		"since:7d":                          "gte 2026-10-19T09:30:00Z",
		"before:1.5d":                       "lt 2026-10-24T21:30:00Z",
		"after:1w":                          "gt 2026-10-19T09:30:00Z",
		"since:2026-10-01T08:00":            "gte 2026-10-01T06:00:00Z",
		`since:"2026-10-01 08:00:30"`:       "gte 2026-10-01T06:00:30Z",
		"since:2026-10-01T08:00Z":           "gte 2026-10-01T08:00:00Z",
		"until:2026-10-01T08:00:00.5-01:00": "lte 2026-10-01T09:00:00.5Z",
		"time:2026-10-01..2026-10-07":       "gte 2026-09-30T22:00:00Z lt 2026-10-07T22:00:00Z",
		"time:2026-10-01..":                 "gte 2026-09-30T22:00:00Z",
		"time:>=2026-10-01":                 "gte 2026-09-30T22:00:00Z",
	} {
		s, err := read(line, filterline.Clock{Now: now, Zone: berlin})
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		var got []string
		for _, f := range s.Filters {
			var at string
			if err := json.Unmarshal(f.Value, &at); err != nil || f.Field != "list_time" {
				t.Errorf("%s: %v", line, f)
			}
			got = append(got, f.Operator+" "+at)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s means %s, want %s", line, strings.Join(got, " "), want)
		}
	}
}

// A filter of a caller is no line: it may be one condition, or an OR.
func TestAFilterBesideALineKeepsItsMeaning(t *testing.T) {
	line, err := read("refund", clock)
	if err != nil {
		t.Fatal(err)
	}
	const word = `{"field":"text","operator":"matches","value":"refund"}`
	const a, b = `{"field":"model","operator":"is_null"}`, `{"field":"cost","operator":"is_null"}`
	for given, want := range map[string]string{
		`{}`: "",
		a:    "," + a,
		`{"logic":"OR","filters":[` + a + "," + b + `]}`: `,{"logic":"OR","filters":[` + a + "," + b + `]}`,
	} {
		var f wire.Filter
		if err := json.Unmarshal([]byte(given), &f); err != nil {
			t.Fatal(err)
		}
		raw, _ := json.Marshal(filterline.Both(line, &f))
		if whole := `{"logic":"AND","filters":[` + word + want + `]}`; string(raw) != whole {
			t.Errorf("with %s the filter is %s, want %s", given, raw, whole)
		}
		if filterline.Both(nil, &f) != &f || filterline.Both(&f, nil) != &f {
			t.Errorf("%s alone is another filter", given)
		}
	}
}

// Of q, nothing is a key, and its faults name it.
func TestWordsWithoutKeys(t *testing.T) {
	for text, want := range map[string]string{
		`status:error`: `text matches "status:error"`,
		`refund OR (-"30 days" late*)`: `(text matches "refund" or ` +
			`(text not_matches "30 days" and text matches "late*"))`,
	} {
		line, err := filterline.ParseText(text)
		if err != nil {
			t.Fatal(err)
		}
		if f, err := line.Compile(clock); err != nil || f.String() != want {
			t.Errorf("%s is %s, %v; want %s", text, f.String(), err, want)
		}
	}
	_, err := filterline.ParseText(`refund (order`)
	if e := faultOf(t, err); e.Field != "q" || *e.Offset != 7 {
		t.Errorf("the fault is %+v", e)
	}
}

func TestWhatWordsMayHaveMeant(t *testing.T) {
	for _, c := range []struct{ list, line, want string }{
		{"requests", "status:error yesterday -today refund", "status:error time:yesterday -time:today refund"},
		{"users", "user-42 last-week cost:>1", "user:user-42 time:last-week cost:>1"},
		{"sessions", `"a b" (x OR y)`, `session:"a b" (x OR y)`},
		{"requests", "status:error refund", ""},
		{"traces", "user-42", ""},
	} {
		line, err := filterline.Parse(c.line)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := line.Meant(c.list)
		if ok != (c.want != "") || ok && got.String() != c.want {
			t.Errorf("%s of %s: %v, %s; want %s", c.line, c.list, ok, got, c.want)
		}
	}
}

// Each example of the table is a line, and asks for its field.
func TestTheExamplesOfTheFields(t *testing.T) {
	for _, f := range filterline.Fields {
		line, err := filterline.Parse(f.Example)
		if err != nil || len(line.Terms) != 1 || line.Terms[0].Field == nil || line.Terms[0].Field.Name != f.Name {
			t.Errorf("%s is no example of %s: %v", f.Example, f.Name, err)
		}
		if f.IsOfCalls() {
			carriedOut(t, f.Example)
		}
		r, err := line.CompileRollup(clock)
		if err != nil || !f.IsOfCalls() && (r.Having == nil || r.Calls != nil) {
			t.Errorf("of a session %s is %+v, %v", f.Example, r, err)
		}
	}
}

// Of a session, a line says what it is itself, what its calls are, and when it was in use.
func TestALineOfSessionsTracesAndUsers(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  " | ",
		"turns:>3 cost:0.5..2 duration:<5m": "turns gt 3 and cost between [0.5,2] and duration_ms lt 300000 | ",
		"mean_score:..50 status:error":      `mean_score lte 50 | status is "error"`,
		"cost:* model:(a or b)":             ` | cost is_not_null and model in ["a","b"]`,
		"-model:a refund":                   ` | model is_not "a" and text matches "refund"`,
		"since:2026-11-21T12:00Z":           `last_seen gte "2026-11-21T12:00:00Z" | `,
		"time:2026-11-21": `last_seen gte "2026-11-20T23:00:00Z" and ` +
			`first_seen lt "2026-11-21T23:00:00Z" | `,
		"time:2026-11-21T12:00Z": `last_seen gte "2026-11-21T12:00:00Z" and ` +
			`first_seen lt "2026-11-21T12:00:00Z" | `,
		"first_seen:<2h user:ann": `first_seen lt "2026-11-22T09:00:00Z" | user_id is "ann"`,
		"before:2026-11-21T12:00Z turns:1 user:ann": // a call of that time
		`turns is 1 | user_id is "ann" and ` +
			`list_time lt "2026-11-21T12:00:00Z"`,
		"-time:>2h": ` | (list_time lte "2026-11-22T09:00:00Z" or list_time is_null)`,

		"status:error -turns:>3": "is wrong at character 14: of sessions, traces and users, turns takes one " +
			"comparison, as in turns:>3, and no dash",
		"cost:(1 or 2)": "is wrong at character 1: of sessions, traces and users, cost takes one comparison, " +
			"as in cost:>0.01, and no dash",
		"since:soon": "is wrong at character 7: since takes a day or a time, as in today, yesterday, 2026-11-21, " +
			"2026-11-21T18:00, or 2h for two hours ago",
		"duration:5": "is wrong at character 10: duration takes a time with its unit, as in 2s, 500ms or 1m30s",
	} {
		line, err := filterline.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		r, err := line.CompileRollup(clock)
		got := r.Having.String() + " | " + r.Calls.String()
		if err != nil {
			got = faultOf(t, err).Reason
		}
		if got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}

// FuzzLine checks that a line that was printed is read as the same line, whatever was typed.
func FuzzLine(f *testing.F) {
	for _, field := range filterline.Fields {
		f.Add(field.Example)
		f.Add("-" + field.Name + ":(" + `"a b" or >5, *x*` + ")")
	}
	f.Add(`status:error "purple elephant" -env:staging template:"a@b"@3 metadata."a \" b".c:x..y`)
	f.Add(`refund (order OR "30 days"* OR -(a* tag:b@c)) OR (x)y -(-a)`)
	f.Add("\u00a0a\u2003:b\x00 -- - \" \\\" (or) cost:(1..2 or ..5) *\"x\"*")

	f.Fuzz(func(t *testing.T, text string) {
		first, err := filterline.Parse(text)
		if err != nil {
			faultOf(t, err)
			return
		}
		printed := first.String()
		second, err := filterline.Parse(printed)
		if err != nil {
			if faultOf(t, err).Reason != "" && len(printed) > filterline.RunesMax/2 {
				return // quotes made it too long
			}
			t.Fatalf("%q is printed as %q: %v", text, printed, err)
		}
		if again := second.String(); again != printed {
			t.Fatalf("%q is printed as %q, and that as %q", text, printed, again)
		}

		one, err := first.Compile(clock)
		two, errTwo := second.Compile(clock)
		if (err == nil) != (errTwo == nil) || !reflect.DeepEqual(one, two) {
			t.Fatalf("%q and %q do not ask for the same: %v, %v; %v, %v", text, printed, one, err, two, errTwo)
		}
	})
}

// FuzzWhere checks that a value that a page or a flag asks for is read from the line as it is.
func FuzzWhere(f *testing.F) {
	f.Add("k", "a")
	f.Add("a key: \"x\"", "support/tri age@3")
	f.Add("model", "*or*")
	f.Add(".-(", ">5 1..2, \\ \" )")
	f.Fuzz(func(t *testing.T, key, value string) {
		if key == "" || !utf8.ValidString(key) || !utf8.ValidString(value) {
			return
		}
		terms := []filterline.Term{
			filterline.Where("template", "", value), filterline.Where("tag", "", value).Negated(),
			filterline.Where("metadata", key, value), filterline.Where("score", key, "20..80"),
			filterline.Where("metadata", key, value).With(filterline.Begins), filterline.Absent("model"),
		}
		made := filterline.Line{Terms: terms}
		want, err := made.Compile(clock)
		if err != nil {
			t.Fatal(err)
		}

		got, err := read(made.String(), clock)
		if err != nil && len(made.String()) > filterline.RunesMax/2 {
			return // too long for a line
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s asks for %v (%v), want %v", made, got, err, want)
		}
	})
}
