package main

import (
	goflag "flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A list of sessions takes the same flags; what is of a session itself is asked of it.
func TestSessionsTracesAndUsersAreListed(t *testing.T) {
	withoutVariables(t)
	const session = `{"id":"chat-17","first_seen":"2026-11-21T10:00:00Z","last_seen":"2026-11-21T10:00:08Z","turns":3,
		"spans":4,"cost":0.25,"input_tokens":1000,"output_tokens":20,"errors":1,"scores":2,"mean_score":62.5}`
	url, call := answering(t, `{"success":true,"items":[`+session+`],"total":1200,"complete":true,"next_cursor":"c2"}`)
	got := say(t, "sessions", "list", "--filter", "turns:>2 status:error cost:0.1..", "--model", "gpt-4o",
		"--sort", "mean_score", "--limit", "1", "--cursor", "c1", "--utc", "--url", url, "--key", "k")
	Equal(t, "call", *call, `k POST /api/public/v2/sessions/search {"filter_group":{"logic":"AND","filters":[`+
		`{"field":"status","operator":"is","value":"error"},{"field":"model","operator":"is","value":"gpt-4o"}]},`+
		`"having":{"logic":"AND","filters":[{"field":"turns","operator":"gt","value":2},`+
		`{"field":"cost","operator":"gte","value":0.1}]},"sort_by":"mean_score",`+
		`"per_page":1,"cursor":"c1"}`)
	Equal(t, "the list", "\n"+got.Out, `
SESSION ID  LAST SEEN                DURATION  TURNS  SPANS  ERRORS    TOKENS   COST  SCORE
chat-17     2026-11-21 10:00:08 UTC    8.00 s      3      4       1  1,000+20  $0.25   62.5

1 of 1,200

More: --cursor c2
`)
	got = say(t, "sessions", "list", "--page", "3", "--url", url, "--key", "k")
	Equal(t, "the third page", *call, `k POST /api/public/v2/sessions/search {"per_page":20,"cursor":"c2"}`)
	if !strings.HasSuffix(got.Out, "\nMore: --page 4, or --cursor c2\n") {
		t.Errorf("the third page: %s", got.Out)
	}

	named := strings.Replace(session, `{`, `{"name":"Answer",`, 1)
	url, _ = answering(t, `{"success":true,"items":[`+named+`],"total":1,"complete":true,"next_cursor":null}`)
	if got := say(t, "traces", "list", "--url", url, "--key", "k"); !strings.Contains(got.Out, "62.5  Answer\n") {
		t.Errorf("a trace without its name: %+v", got)
	}

	url, call = answering(t, `{"success":true,"items":[],"complete":true,"next_cursor":null}`)
	for _, list := range []string{"users list", "traces list", "requests orphans"} {
		got := say(t, strings.Fields(list+" --page 2 --key k --url "+url)...)
		Equal(t, list, got, said{Code: 1, Err: "promptspool: there is no page 2: the list ends with page 1\n"})
	}
	for _, of := range []string{"traces", "users"} {
		got := say(t, of, "list", "--filter", "turns:1", "--url", url, "--key", "k")
		if !strings.Contains(*call, "/v2/"+of+"/search ") || got.Out != "No "+of+" match these filters.\n" {
			t.Errorf("%s: %s: %+v", of, *call, got)
		}
	}
	got = say(t, "requests", "search", "--filter", "today", "--url", url, "--key", "k")
	Equal(t, "a time", got.Out, "No requests match these filters. Did you mean 'time:today'?\n")
	if got := say(t, "users", "list", "--filter", "-turns:1", "--url", url, "--key", "k"); got.Code != 2 {
		t.Errorf("a wrong line: %+v", got)
	}
}

func TestFiltersOfTheCommands(t *testing.T) {
	withoutVariables(t)
	url, call := answering(t, `{"success":true,"items":[]}`)
	say(t, "requests", "search", "--template", "a@b@3", "--status", "ERROR", "--model", "m:1", "--user", "ann",
		"--session", "s 1", "--metadata", "customer=Acme", "--sort", "cost", "--output", "json",
		"--url", url, "--key", "k")
	Equal(t, "call", *call, `k POST /api/public/v2/requests/search {"filter_group":{"logic":"AND","filters":[`+
		`{"field":"metadata","operator":"is","value":"Acme","nested_key":"customer"},`+
		`{"field":"session_id","operator":"is","value":"s 1"},`+
		`{"field":"user_id","operator":"is","value":"ann"},`+
		`{"field":"model","operator":"is","value":"m:1"},`+
		`{"field":"prompt_name","operator":"is","value":"a@b"},`+
		`{"field":"prompt_version_number","operator":"is","value":3},`+
		`{"field":"status","operator":"is","value":"ERROR"}]},"sort_by":"cost","per_page":20}`)

	say(t, "requests", "search", "--template", "a@prod", "--output", "json", "--url", url, "--key", "k")
	Equal(t, "call", *call, `k POST /api/public/v2/requests/search {"filter_group":{"logic":"AND","filters":[`+
		`{"logic":"OR","filters":[`+
		`{"field":"prompt_name","operator":"is","value":"a@prod"},{"logic":"AND","filters":[`+
		`{"field":"prompt_name","operator":"is","value":"a"},`+
		`{"field":"label","operator":"is","value":"prod"}]}]}]},"per_page":20}`)

	say(t, "requests", "search", "--filter", `status:error "broken kettle" since:2026-11-21`, "--utc",
		"--tag", "x", "--output", "json", "--url", url, "--key", "k")
	Equal(t, "call", *call, `k POST /api/public/v2/requests/search {"filter_group":{"logic":"AND","filters":[`+
		`{"field":"status","operator":"is","value":"error"},`+
		`{"field":"text","operator":"matches","value":"broken kettle"},`+
		`{"field":"list_time","operator":"gte","value":"2026-11-21T00:00:00Z"},`+
		`{"field":"tags","operator":"is","value":"x"}]},"per_page":20}`)

	got := say(t, "requests", "search", "--filter", "é latency:fast", "--url", url, "--key", "k")
	if got.Code != 2 || !strings.Contains(got.Err, "is wrong at character 11: latency takes a time with its unit") {
		t.Errorf("a wrong line: %+v", got)
	}

	for _, invalid := range [][]string{
		{"--after", "soon"}, {"--status", "fine"}, {"--metadata", "x"},
	} {
		got := say(t, append([]string{"requests", "search", "--url", url, "--key", "k"}, invalid...)...)
		if got.Code != 2 || !strings.Contains(got.Err, invalid[0]) {
			t.Errorf("%v: %+v", invalid, got)
		}
	}
}

// inLosAngeles runs the test on a machine there.
func inLosAngeles(t *testing.T) *time.Location {
	t.Helper()
	there, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TZ", there.String()) // also keeps other tests from running beside this one

	here := time.Local
	time.Local = there
	t.Cleanup(func() { time.Local = here })

	return there
}

func TestTimesOfCommandsAreTheReadersAndNameTheirZone(t *testing.T) {
	withoutVariables(t)
	there := inLosAngeles(t)
	url, call := answering(t, `{"success":true,"items":[{"request_id":"r1","list_time":"2026-07-01T05:47:03Z"},
		{"request_id":"r2","list_time":"2026-03-01T05:47:03Z"}],"overall":{"requests":1},
		"stats":[{"date":"2026-02-28","requests":1}]}`)
	ask := func(args ...string) said {
		return say(t, append([]string{"requests"}, append(args, "--url", url, "--key", "k")...)...)
	}

	got := ask("search")
	if !strings.Contains(got.Out, " 2026-06-30 22:47:03 PDT ") ||
		!strings.Contains(got.Out, " 2026-02-28 21:47:03 PST ") {
		t.Errorf("in the machine's zone:\n%s", got.Out)
	}
	if got = ask("search", "--utc"); !strings.Contains(got.Out, " 2026-07-01 05:47:03 UTC ") {
		t.Errorf("with --utc:\n%s", got.Out)
	}
	if got = ask("stats"); !strings.Contains(got.Out, "From 2026-02-28 to 2026-02-28, America/Los_Angeles.") ||
		!strings.Contains(*call, `"tz":"America/Los_Angeles"`) {
		t.Errorf("statistics of days there: %s\n%s", *call, got.Out)
	}

	// Every flag for times reads the same words.
	day := func(zone *time.Location, back int) string {
		y, m, d := time.Now().In(zone).Date()
		return time.Date(y, m, d-back, 0, 0, 0, 0, zone).UTC().Format(time.RFC3339)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--after", "yesterday"}, `"gte","value":"` + day(there, 1) + `"`},
		{[]string{"--before", "today"}, `"lt","value":"` + day(there, 0) + `"`},
		{[]string{"--before", "Today", "--utc"}, `"lt","value":"` + day(time.UTC, 0) + `"`},
		{[]string{"--after", "2026-11-21"}, `"gte","value":"2026-11-21T08:00:00Z"`},
		{[]string{"--after", "2026-11-21T18:00", "--utc"}, `"gte","value":"2026-11-21T18:00:00Z"`},
		{[]string{"--before", "2026-11-21T18:00:00+01:00"}, `"lt","value":"2026-11-21T17:00:00Z"`},
		{[]string{"--before", "1793000000"}, `"lt","value":"2026-10-26T07:33:20Z"`},
		{[]string{"--filter", "since:yesterday"}, `"gte","value":"` + day(there, 1) + `"`},
	} {
		if ask(append([]string{"search"}, test.args...)...); !strings.Contains(*call, test.want) {
			t.Errorf("%v asks %s, want %s", test.args, *call, test.want)
		}
	}
	got = ask("search", "--after", "noon")
	if got.Code != 2 || !strings.Contains(got.Err, "as in today, yesterday") {
		t.Errorf("a wrong time: %+v", got)
	}
}

// TestARecordReadsAsAConversation shows a record with everything, including data that
// would drive a terminal.
func TestARecordReadsAsAConversation(t *testing.T) {
	withoutVariables(t)
	url, _ := answering(t, `{"success":true,"request_id":"r1","function_name":"anthropic.messages.create",
		"provider":"anthropic","model":"claude-sonnet-4-5",
		"input_tokens":1000,"output_tokens":55,"cached_tokens":900,"tokens":1055,"price":0.001395,
		"latency_ms":1181,"status":"SUCCESS","finish_reason":"tool_use","readable":true,
		"tags":["a","b"],"metadata":{"user_id":"u\u001b[31m7"},"scores":[{"name":"default","score":87}],
		"prompt":{"name":"greet","version":3,"label":"prod"},
		"accepted_at":"2026-03-01T12:00:00Z","list_time":"2026-03-01T11:59:58Z",
		"request":{"kwargs":{"system":"Be\u202e kind.","messages":[
			{"role":"user","content":"Where is\n\tmy order\u0007?"},
			{"role":"user","content":[
				{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}]},
		"request_response":{"content":[{"type":"thinking","thinking":"Unknown."},
			{"type":"text","text":"I will look."},
			{"type":"tool_use","id":"t1","name":"find","input":{"customer":"u7"}}]}}}`)

	got := say(t, "requests", "get", someID, "--utc", "--url", url, "--key", "k")
	golden(t, "get.txt", got.Out)
	if got.Code != 0 || strings.ContainsAny(got.Out, "\x1b\x07\u202e") {
		t.Errorf("%+v", got)
	}
	Equal(t, "its page", say(t, "requests", "get", someID, "--web", "--url", url+"/base/", "--key", "k"),
		said{Out: url + "/base/requests/" + someID + "\n"})
}

// someID is that of a request.
const someID = "0198c1f2-abcd-7000-8000-000000000001"

// What only calls have, such as tokens and a cost, is not unknown of a span: it has none.
func TestASpanThatIsNoCallIsNotShownAsARequest(t *testing.T) {
	withoutVariables(t)
	url, _ := answering(t, `{"success":true,"request_id":"r1","list_time":"2026-03-01T12:00:00Z",
		"accepted_at":"2026-03-01T12:00:01Z","status":"ERROR","error_type":"timeout","span_name":"get_weather",
		"span_kind":"tool","trace_id":"5b8efff798038103d269b633813fc60c","readable":true,"request":null,
		"span":{"resource":{},"scope":{},"span":{"name":"get_weather","status":{"code":2,"message":"too slow"},
			"attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"execute_tool"}},
			{"key":"gen_ai.tool.call.arguments","value":{"stringValue":"{\"city\":\"Lisbon\"}"}}]}}}`)

	got := say(t, "requests", "get", someID, "--utc", "--url", url, "--key", "k")
	golden(t, "get_span.txt", got.Out)
	if got.Code != 0 {
		t.Errorf("%+v", got)
	}
}

func TestStatisticsByTagsAndMetadata(t *testing.T) {
	withoutVariables(t)
	const answer = `{"success":true,"overall":{"requests":3,"cost":0.0000042,
		"scores":[{"name":"helpful","count":2,"mean":60},{"name":"tone","count":1,"mean":90}]},
		"items":[{"value":"ann","version":null,"requests":2,"cost":0.0000021}],"left_out":1}`
	for by, asked := range map[string]string{
		"tag":              "tag",
		"user":             "metadata.user_id",
		"metadata.user_id": "metadata.user_id",
	} {
		url, call := answering(t, answer)
		got := say(t, "requests", "stats", "--by", by, "--model", "m", "--utc", "--url", url, "--key", "k")
		if !strings.Contains(*call, `"by":"`+asked+`"`) || !strings.Contains(*call, `"value":"m"`) {
			t.Errorf("by %s asks %s", by, *call)
		}
		heading := strings.ToUpper(strings.NewReplacer(".", " ", "_", " ").Replace(by)) + "  "
		if !strings.HasPrefix(got.Out, heading) {
			t.Errorf("by %s: no heading %q in %s", by, heading, got.Out)
		}
		if got.Code != 0 || !strings.Contains(got.Out, "  60.0 (2)  ") || !strings.Contains(got.Out, " $0.0000042 ") ||
			!strings.Contains(got.Out, "\nann ") || !strings.Contains(got.Out, "values that are not listed: 1;") {
			t.Errorf("by %s: %+v", by, got)
		}
		got = say(t, "requests", "stats", "--by", by, "-o", "json", "--url", url, "--key", "k")
		if got.Code != 0 || !strings.Contains(got.Out, `"value": "`) {
			t.Errorf("by %s as JSON: %+v", by, got)
		}
	}

	url, _ := answering(t, `{"success":true,"overall":{"requests":3},"values":["customer","env"]}`)
	Equal(t, "by a key that no request has",
		say(t, "requests", "stats", "--by", "metadata.custmer", "--url", url, "--key", "k").Out,
		"No requests with metadata.custmer.\n")
	for _, by := range []string{"modle", "metadata."} {
		if got := say(t, "requests", "stats", "--by", by, "--key", "k"); got.Code != 2 {
			t.Errorf("by %s: %+v", by, got)
		}
	}
}

func TestDeletingWantsAYes(t *testing.T) {
	withoutVariables(t)
	url, call := answering(t, `{"success":true,"total":12,"items":[{}],"records":12,"events":30}`)
	t.Setenv("PROMPTSPOOL_URL", url)
	t.Setenv("PROMPTSPOOL_KEY", "k")
	got := say(t, "requests", "delete", "--metadata", "user_id=ann")
	if got.Code != 2 || !strings.Contains(got.Err, "12 records") || !strings.Contains(*call, "/search") {
		t.Errorf("%+v, %s", got, *call)
	}
	Equal(t, "with yes", say(t, "requests", "delete", "--metadata", "user_id=ann", "--yes"),
		said{Out: "records  12\nevents   30\n"})
	Equal(t, "call", *call, "k DELETE /api/public/v2/requests?metadata_key=user_id&metadata_value=ann ")

	for _, invalid := range [][]string{
		{}, {"id", "--metadata", "a=b"}, {"--metadata", "a="}, {"--metadata", "=b"}, {"a", "b"},
	} {
		if got := say(t, append([]string{"requests", "delete", "--yes"}, invalid...)...); got.Code != 2 {
			t.Errorf("%v: %+v", invalid, got)
		}
	}
}

// A list shows the beginnings of ids, by which other commands find the requests.
func TestAShortIDFindsItsRequest(t *testing.T) {
	withoutVariables(t)
	const id, other = "019abc12-def0-7001-8000-000000000001", "019abc12-def0-7002-8000-000000000001"
	for _, tt := range []struct {
		given, found, wantCall string
		want                   said
	}{
		{"019abc12-def0", `{"request_id":"` + id + `"}`, "k DELETE /api/public/v2/requests/" + id + " ",
			said{Out: "records  0\nevents   0\n"}},
		{"019ABC12DEF07", `{"request_id":"` + id + `"},{"request_id":"` + other + `"}`,
			`k POST /api/public/v2/requests/search {"filter_group":{"filters":[` +
				`{"field":"request_id","operator":"starts_with","value":"019abc12-def0-7"},{"field":"list_time",` +
				`"operator":"between","value":["2025-11-25T17:31:24.688Z","2025-11-25T17:33:24.688Z"]}]},"per_page":5}`,
			said{Code: 2, Err: "promptspool: several requests have an id that begins with 019ABC12DEF07; " +
				"give more of it:\n  " + id + "\n  " + other + "\nSee `promptspool requests delete --help`.\n"}},
		{"019abc12", "", `k POST /api/public/v2/requests/search {"filter_group":` +
			`{"field":"request_id","operator":"starts_with","value":"019abc12"},"per_page":5}`,
			said{Code: 1, Err: "promptspool: No request has an id that begins with 019abc12.\n"}},
		{someID, "", "k DELETE /api/public/v2/requests/" + someID + " ", said{Out: "records  0\nevents   0\n"}},
		{"r1", "", "", said{Code: 2, Err: `promptspool: "r1" is not a request id or its beginning, of at least 8 ` +
			"hex digits\nSee `promptspool requests delete --help`.\n"}},
	} {
		url, call := answering(t, `{"success":true,"items":[`+tt.found+`]}`)
		got := say(t, "requests", "delete", tt.given, "--yes", "--url", url, "--key", "k")
		Equal(t, tt.given, got, tt.want)
		Equal(t, tt.given+" asks", *call, tt.wantCall)
	}
}

var update = goflag.Bool("update", false, "write the golden files anew")

// golden compares a text with a file of testdata; with -update it writes the file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	Equal(t, name, got, string(want))
}

// cutting answers exports: a line for each event by its id, and marks as " CURSOR" or " done". An answer that ends in
// CUT breaks the connection there.
func cutting(t *testing.T, answers ...string) (url string, calls *[]string) {
	t.Helper()
	calls = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*calls = append(*calls, r.RequestURI+" "+strings.TrimSpace(string(body)))

		w.Header().Set("Promptspool-Version", "9")
		answer := answers[min(len(*calls), len(answers))-1]
		answer, cut := strings.CutSuffix(answer, "CUT")
		for line := range strings.Lines(answer) {
			if cursor, isMark := strings.CutPrefix(strings.TrimSuffix(line, "\n"), " "); isMark {
				line = fmt.Sprintf(`{"export":{"cursor":%q,"done":%t}}`+"\n", cursor, cursor == "done")
			}
			_, _ = io.WriteString(w, line)
		}

		if cut {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, calls
}

func TestAnExportGoesOnWhereItWasCut(t *testing.T) {
	withoutVariables(t)
	url, calls := cutting(t, "r1\nCUT", "r1\n c1\nr2\nhalCUT", "r2\nr3\n done\n")
	got := say(t, "requests", "export", "--model", "m", "--url", url, "--key", "k")
	Equal(t, "events", got, said{Err: "5 events exported.\n", Out: "r1\nr1\nr2\nr2\nr3\n"})
	filter := `{"filter_group":{"logic":"AND","filters":[{"field":"model","operator":"is","value":"m"}]}`
	const path = "/api/public/v2/requests/export "
	Equal(t, "calls", *calls, []string{path + filter + `}`, path + filter + `}`, path + filter + `,"cursor":"c1"}`})

	url, _ = cutting(t, "r1\n c1\nCUT", "CUT")
	got = say(t, "requests", "export", "--url", url, "--key", "k")
	if got.Code != 1 || !strings.Contains(got.Err, "--cursor c1") || got.Out != "r1\n" {
		t.Errorf("a server that never ends its answer: %+v", got)
	}
}

func TestAnExportWritesOverAFileOnlyByForce(t *testing.T) {
	withoutVariables(t)
	file := filepath.Join(t.TempDir(), "calls.jsonl")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	url, _ := cutting(t, "r1\n done\n")
	args := []string{"requests", "export", file, "--url", url, "--key", "k"}
	Equal(t, "without it", say(t, args...), said{Code: 1, Err: "promptspool: " + file +
		" already exists; give a new file, or --force to write over it\n"})
	got := say(t, append(args, "--force")...)
	text, err := os.ReadFile(file)
	if got.Code != 0 || err != nil || string(text) != "r1\n" {
		t.Errorf("with it: %+v, %q, %v", got, text, err)
	}
}

func TestAnExportThatIsRefusedIsNotToBeResumed(t *testing.T) {
	withoutVariables(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Promptspool-Version", "9")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"success":false,"error":"invalid","message":"cursor is wrong.","fields":[]}`)
	}))
	t.Cleanup(server.Close)

	got := say(t, "requests", "export", "--cursor", "x", "--url", server.URL, "--key", "k")
	Equal(t, "said", got, said{Code: 1, Err: "promptspool: cursor is wrong.\n"})
}

func TestATraceIsDrawnAsATree(t *testing.T) {
	withoutVariables(t)
	const trace = "5b8efff798038103d269b633813fc60c"
	span := func(id, parent, name, times, rest string) string {
		return fmt.Sprintf(`{"id":%q,"span_id":%[1]q,"parent_id":%s,"name":%q,%s%s}`, id, parent, name, times, rest)
	}
	times := func(from, to int) string {
		const at = `"%s_time":"2026-11-26T12:00:%02dZ"`
		return fmt.Sprintf(at+","+at, "start", from, "end", to)
	}
	url, _ := answering(t, `{"success":true,"session_id":"chat-17","spans":[`+strings.Join([]string{
		span("a", "null", "Answer", times(0, 8), ""),
		span("b", `"a"`, "chat", times(0, 4), `,"request_log_id":"b","input_tokens":90,"output_tokens":10,"price":0.5`),
		span("c", `"a"`, "look\tup", times(4, 8), ""),
		span("d", `"c"`, "track", times(4, 4), `,"status":"ERROR"`),
		span("e", `"x"`, "lost", times(5, 6), ""),
	}, ",")+`],"items":[{"id":"`+trace+`"}],"request":{"function_name":"f","status":"ERROR",
		"error_message":"504: no answer","request_response":{}}}`)

	got := say(t, "traces", "get", trace, "--utc", "--url", url, "--key", "k")
	head, tree, _ := strings.Cut(strings.ReplaceAll(got.Out, "█", "="), "\n\n")
	Equal(t, "facts", head, "2026-11-26 12:00:00 UTC, 8.00 s, 5 spans, 1 call, 90+10 tokens, $0.50, 1 error, "+
		"session chat-17")
	Equal(t, "tree", tree, `SPAN                   TIMELINE                     DURATION  TOKENS   COST
Answer (✗ 1 below)     ===========================    8.00 s   90+10  $0.50
├ chat                 ==============                 4.00 s   90+10  $0.50
├ look up (✗ 1 below)                =============    4.00 s       -      -
│ └ ✗ track                          ▏                  0 ms       -      -
└ lost (no parent)                      ===           1.00 s       -      -

track, d
  504: no answer
`)
	Equal(t, "by its beginning", say(t, "traces", "get", trace[:8], "--utc", "--url", url, "--key", "k"), got)
	Equal(t, "by another one", say(t, "traces", "get", "5b8efff8", "--url", url, "--key", "k"),
		said{Code: 1, Err: "promptspool: No trace has an id that begins with 5b8efff8.\n"})
	if got := say(t, "traces", "get", trace, "-o", "json", "--url", url, "--key", "k"); got.Code != 0 ||
		!strings.Contains(got.Out, `"parent_missing": true`) {
		t.Errorf("JSON: %+v", got)
	}
}

func TestASessionIsPrintedAsAConversation(t *testing.T) {
	withoutVariables(t)
	const row = `{"request_id":%q,"list_time":"2026-11-26T12:0%d:00Z","engine":"gpt-4o","latency":2,"price":0.5}`
	url, _ := answering(t, `{"success":true,"id":"chat-17","first_seen":"2026-11-26T12:00:00Z",
		"last_seen":"2026-11-26T12:00:05Z","turns":2,"input_tokens":90,"output_tokens":10,"cost":1,"errors":0,
		"mean_score":70,"items":[`+fmt.Sprintf(row+","+row, "r1", 0, "r2", 1)+`],"request":{"function_name":"f",
		"kwargs":{"messages":[{"role":"user","content":"Where is it?"}]},"request_response":"It is here."}}`)

	got := say(t, "sessions", "get", "chat-17", "--utc", "--url", url, "--key", "k")
	Equal(t, "conversation", strings.ReplaceAll(got.Out, "─", ""), `SESSION ID  `+
		`LAST SEEN                DURATION  TURNS  SPANS  ERRORS  TOKENS   COST  SCORE
chat-17     2026-11-26 12:00:05 UTC    5.00 s      2      0       0   90+10  $1.00   70.0

2026-11-26 12:00:00 UTC, gpt-4o, 2.00 s, $0.50, $0.50 so far
r1

 user 
  Where is it?

 assistant 
  It is here.

2026-11-26 12:01:00 UTC, gpt-4o, 2.00 s, $0.50, $1.00 so far
r2

Sent the same messages again.

 assistant 
  It is here.
`)
	if got := say(t, "sessions", "get", "chat-17", "-o", "json", "--url", url, "--key", "k"); got.Code != 0 ||
		strings.Count(got.Out, `"Where is it?"`) != 2 {
		t.Errorf("JSON: %+v", got)
	}
}
