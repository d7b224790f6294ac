package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"

	"promptspool/cmd/promptspool/internal/config"
)

// said is the output of a run of the program, and its exit code.
type said struct {
	Code     int
	Out, Err string
}

// say runs a command line within this process.
func say(t *testing.T, args ...string) said {
	t.Helper()
	var out, err bytes.Buffer
	code := run(t.Context(), append([]string{"promptspool"}, args...), &out, &err)
	return said{code, out.String(), err.String()}
}

// withoutVariables removes the variables that the machine sets for promptspool, and the contexts that its owner keeps.
func withoutVariables(t *testing.T) {
	t.Helper()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "PROMPTSPOOL_") {
			t.Setenv(name, "")
		}
	}
}

func Equal(t *testing.T, name string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// leaves returns the commands that do something, by their full names.
func leaves(commands []*cli.Command, above string) map[string]*cli.Command {
	all := map[string]*cli.Command{}
	for _, c := range commands {
		name := strings.TrimSpace(above + " " + c.Name)
		if len(c.Subcommands) == 0 {
			all[name] = c
		}
		for n, sub := range leaves(c.Subcommands, name) {
			all[n] = sub
		}
	}
	return all
}

func TestEveryFlagHasAVariableAndSaysWhatItIsFor(t *testing.T) {
	seen := 0
	for name, c := range leaves(newApp(&bytes.Buffer{}, &bytes.Buffer{}).Commands, "") {
		if c.Usage == "" {
			t.Errorf("%s has no usage", name)
		}
		variables := map[string]string{}
		for _, f := range c.Flags {
			f, ok := f.(cli.DocGenerationFlag)
			isOurs := regexp.MustCompile(`^PROMPTSPOOL_[A-Z_]+$`).MatchString
			if !ok || len(f.GetEnvVars()) != 1 || !isOurs(f.GetEnvVars()[0]) {
				t.Errorf("%s %v: the variable is not one of ours", name, f)
				continue
			}

			variable := f.GetEnvVars()[0]
			if other := variables[variable]; other != "" {
				t.Errorf("%s: --%s and --%s share %s", name, other, f.Names()[0], variable)
			}

			variables[variable] = f.Names()[0]
			if f.GetUsage() == "" || strings.Contains(f.GetUsage(), "(default") && f.GetDefaultText() != "" {
				t.Errorf("%s --%s: its usage %q is empty, or names a default beside that which the help adds",
					name, f.Names()[0], f.GetUsage())
			}

			seen++
		}
	}

	if seen < 40 {
		t.Errorf("only %d flags were seen", seen)
	}
}

func TestAVariableOfTwoCommandsMeansTheSameToBoth(t *testing.T) {
	// The variables that a pod sets for its own process must not change a command that
	// somebody runs in it.
	shared := strings.Fields("PROMPTSPOOL_DATA PROMPTSPOOL_UPSTREAM PROMPTSPOOL_URL PROMPTSPOOL_KEY " +
		"PROMPTSPOOL_CONTEXT PROMPTSPOOL_OUTPUT PROMPTSPOOL_JSON PROMPTSPOOL_JQ PROMPTSPOOL_UTC")
	// The flags of trust belong to the two addresses.
	for _, f := range slices.Concat(config.TrustFlags("upstream"), config.TrustFlags("url")) {
		shared = append(shared, f.(cli.DocGenerationFlag).GetEnvVars()...)
	}
	running := strings.Fields("up server sidecar")

	users := map[string][]string{}
	for name, c := range leaves(newApp(&bytes.Buffer{}, &bytes.Buffer{}).Commands, "") {
		for _, f := range c.Flags {
			variable := f.(cli.DocGenerationFlag).GetEnvVars()[0]
			if !slices.Contains(running, name) && !slices.Contains(shared, variable) {
				users[variable] = append(users[variable], name)
			}
		}
	}

	for _, name := range running {
		for _, f := range leaves(newApp(&bytes.Buffer{}, &bytes.Buffer{}).Commands, "")[name].Flags {
			if by := users[f.(cli.DocGenerationFlag).GetEnvVars()[0]]; by != nil {
				t.Errorf("--%s of %s has the variable of a flag of %v", f.Names()[0], name, by)
			}
		}
	}

	for variable, by := range users {
		if len(by) > 1 {
			t.Errorf("%s belongs to %v", variable, by)
		}
	}
}

func TestWrongUsageExitsWith2AndTellsTheNextStep(t *testing.T) {
	withoutVariables(t)

	long := strings.Repeat("n", 256)
	for _, tt := range []struct{ command, args, want string }{
		{"", "frob", "there is no command \"frob\""},
		{"", "help frob", "there is no command \"frob\""},
		{"", "requets", "there is no command \"requets\"; did you mean requests?"},
		{"", "stats", "there is no command \"stats\"; did you mean requests stats?"},
		{"", "get x", "there is no command \"get\"; did you mean requests get, traces get or sessions get?"},
		{"requests", "serch", "there is no command \"serch\"; did you mean search?"},
		{"", "serch x", "there is no command \"serch\"; did you mean requests search?"},
		{"templates", "get greet", "there is no command \"get\"; did you mean show?"},
		{"requests", "follow", "there is no command \"follow\"; did you mean tail?"},
		{"sessions", "show x", "there is no command \"show\"; did you mean get?"},
		{"requests search", "-n 5", "flag provided but not defined: -n; did you mean --limit?"},
		{"requests search", "--since 1d", "flag provided but not defined: --since; did you mean --after?"},
		{"requests search", "--limt 5", "flag provided but not defined: --limt; did you mean --limit?"},
		{"keys create", "--data x --scope al",
			"--scope (or PROMPTSPOOL_KEYS_CREATE_SCOPE): \"al\" is no scope: give app, full, or some of log, " +
				"score, fetch, read, publish, manage with commas between them"},
		{"keys create", "--data x --scope ful",
			"--scope (or PROMPTSPOOL_KEYS_CREATE_SCOPE): \"ful\" is no scope: give app, full, or some of log, " +
				"score, fetch, read, publish, manage with commas between them; did you mean full?"},
		{"people invite", "--data x --role eidtor",
			"--role (or PROMPTSPOOL_PEOPLE_INVITE_ROLE): \"eidtor\" is not one of viewer, reviewer, editor, " +
				"owner; did you mean editor?"},
		{"requests search", "--key k --after soon",
			"--after (or PROMPTSPOOL_REQUESTS_SEARCH_AFTER): \"soon\" is wrong: it takes a day or a time, " +
				"as in today, yesterday, 2026-11-21, 2026-11-21T18:00, or 2h for two hours ago"},
		{"keys", "frob", "there is no command \"frob\""},
		{"", "--frob", "flag provided but not defined: --frob"},
		{"server", "--frob", "flag provided but not defined: --frob"},
		{"keys list", "--data", "flag needs an argument: --data"},
		{"server", "", "--data (or PROMPTSPOOL_DATA) is missing: data folder (created if missing)"},
		{"server", "more", "unexpected argument \"more\": this command takes flags only"},
		{"sidecar", "--data x",
			"--upstream (or PROMPTSPOOL_UPSTREAM) is missing: the URL of the server, such as " +
				"http://127.0.0.1:8788"},
		{"sidecar", "--data x --upstream h:1",
			"--upstream (or PROMPTSPOOL_UPSTREAM): \"h:1\" is not the URL of a server; give one such as " +
				"http://127.0.0.1:8788"},
		{"sidecar", "--name " + long,
			"--name (or PROMPTSPOOL_NAME): \"" + long + "\" must be a text of 1 to 255 bytes"},
		{"sidecar", "--log-level loud",
			"--log-level (or PROMPTSPOOL_LOG_LEVEL): \"loud\" is not one of debug, info, warn, error"},
		{"sidecar", "--data x --upstream https://h:1 --ops-listen unix:/x",
			"--ops-listen (or PROMPTSPOOL_OPS_LISTEN): \"unix:/x\" is not an address such as 127.0.0.1:8787"},
		{"up", "--server-listen unix:/x --server-ops-listen unix:/y",
			"--server-listen (or PROMPTSPOOL_SERVER_LISTEN): \"unix:/x\" is not an address such as 127.0.0.1:8787\n" +
				"--server-ops-listen (or PROMPTSPOOL_SERVER_OPS_LISTEN): \"unix:/y\" is not an address such as " +
				"127.0.0.1:8787"},
		{"keys revoke", "--data x", "give the id of one key; `promptspool keys list` shows them"},
		{"requests get", "", "give one request id, or its beginning as `promptspool requests search` lists it"},
		{"requests get", "id --url http://h",
			"--key (or PROMPTSPOOL_KEY) is missing: a key of scope full, as promptspool keys create " +
				"--scope full makes; better given by its variable or kept by login"},
		{"requests get", "id --key k --url h",
			"--url (or PROMPTSPOOL_URL): \"h\" is not the URL of a server; give one such as " +
				"http://127.0.0.1:8788"},
		{"requests search", "--key k --metadata x",
			"--metadata (or PROMPTSPOOL_REQUESTS_SEARCH_METADATA): \"x\" is not key=value"},
		{"requests search", "--key k --status foo",
			"--status (or PROMPTSPOOL_REQUESTS_SEARCH_STATUS): \"foo\" is wrong: it takes one of: SUCCESS, " +
				"WARNING, ERROR"},
		{"requests search", "--key k --status eror",
			"--status (or PROMPTSPOOL_REQUESTS_SEARCH_STATUS): \"eror\" is wrong: it takes one of: SUCCESS, " +
				"WARNING, ERROR; did you mean ERROR?"},
		{"requests search", "--key k --sort foo",
			"--sort (or PROMPTSPOOL_REQUESTS_SEARCH_SORT): \"foo\" is not one of list_time, " +
				"accepted_at, request_start_time, input_tokens, output_tokens, cost, latency_ms, " +
				"time_to_first_token_ms, status, cache_write_tokens, score.NAME"},
		{"requests search", "--key k --filter status:eror",
			"--filter (or PROMPTSPOOL_REQUESTS_SEARCH_FILTER): \"status:eror\" is wrong at character 8: " +
				"status takes one of: SUCCESS, WARNING, ERROR; did you mean ERROR?"},
		{"requests stats", "--key k --by tga",
			"--by (or PROMPTSPOOL_REQUESTS_STATS_BY): \"tga\" is not one of version, model, provider, status, " +
				"tag, user, session, environment, metadata.NAME; did you mean tag?"},
		{"templates show", "",
			"give the name or id of one template; `promptspool templates list` shows them"},
		{"templates list", "--page -1",
			"--page (or PROMPTSPOOL_TEMPLATES_LIST_PAGE): \"-1\" is not a number from 1 to 100000"},
	} {
		see := strings.TrimSpace("promptspool " + tt.command)
		want := said{Code: 2, Err: "promptspool: " + tt.want + "\nSee `" + see + " --help`.\n"}
		Equal(t, tt.command+" "+tt.args, say(t, strings.Fields(tt.command+" "+tt.args)...), want)
	}
}

func TestHelpReadsWellAtEveryWidth(t *testing.T) {
	withoutVariables(t)
	app := newApp(&bytes.Buffer{}, &bytes.Buffer{})
	app.Setup()
	for _, columns := range []int{80, 140} {
		var out bytes.Buffer
		help{&out, columns}.print(app)
		for _, name := range []string{"requests search", "keys", "sidecar"} {
			out.WriteString("\n$ promptspool " + name + " --help\n")
			c := app.Command(strings.Fields(name)[0])
			if _, sub, nested := strings.Cut(name, " "); nested {
				c = c.Command(sub)
			}
			c.HelpName = "promptspool " + name
			help{&out, columns}.print(c)
		}

		path := fmt.Sprintf("testdata/help_%d.txt", columns)
		if *update {
			if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		Equal(t, path+"; if it is as it should be, run this test with -update", out.String(), string(want))
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(line) - 1; n > columns {
				t.Errorf("%d columns are %d: %s", columns, n, line)
			}
		}
	}
}

func TestHelpIsThereForEveryWayToAsk(t *testing.T) {
	withoutVariables(t)
	whole := say(t).Out
	get := say(t, "requests", "get", "--help").Out
	group := say(t, "requests").Out
	for line, want := range map[string]string{
		"--help":                       whole,
		"help":                         whole,
		"-h":                           whole,
		"help requests get":            get,
		"requests help get":            get,
		"requests get ID --help":       get,
		"-o json requests get ID -h":   get,
		"requests --help":              group,
		"help requests":                group,
		"requests help":                group,
		"requests search help":         say(t, "requests", "search", "--help").Out,
		"requests search --limit 5 -h": say(t, "requests", "search", "--help").Out,
		"--version":                    "promptspool version " + version + "\n",
	} {
		Equal(t, line, say(t, strings.Fields(line)...), said{Out: want})
	}
	for _, text := range []string{whole, get, group} {
		if text != whole && !strings.Contains(text, "\n\nUSAGE\n  promptspool requests") {
			t.Errorf("the help begins with %.80q", text)
		}
	}
}

// The test of examples then names the command; `promptspool requests` must not crash meanwhile.
func TestTheHelpOfAGroupDoesWithoutAnExample(t *testing.T) {
	var out bytes.Buffer
	group := cli.Command{HelpName: "promptspool keys", Usage: "keep keys", Subcommands: []*cli.Command{
		{Name: "lis", Usage: "has none: its name is only the beginning of another's"},
		{Name: "list", Usage: "has one"},
	}}
	help{&out, 100}.print(&group)

	want := "\nEXAMPLES\n  promptspool keys list --data .promptspool\n\n"
	if !strings.Contains(out.String(), want) {
		t.Errorf("the help has no %q:\n%s", want, &out)
	}
}

// No server answers, and the data folder is empty.
func TestEveryFlagAndArgumentIsCompletedWithoutAServer(t *testing.T) {
	withoutVariables(t)
	t.Setenv("PROMPTSPOOL_KEY", "k")
	t.Setenv("PROMPTSPOOL_URL", "http://127.0.0.1:1")
	for name, c := range leaves(newApp(&bytes.Buffer{}, &bytes.Buffer{}).Commands, "") {
		typed := [][]string{{""}, {"-"}, {"an argument", ""}}
		for _, f := range c.Flags {
			typed = append(typed, []string{"--" + f.Names()[0], ""}, []string{"--" + f.Names()[0] + "="})
		}
		for _, words := range typed {
			line := append(append(strings.Fields(name), words...), "--generate-bash-completion")
			if got := say(t, line...); got.Code != 0 || got.Err != "" || words[0] == "-" && len(got.Out) < 10 {
				t.Errorf("%q: %+v", line, got)
			}
		}
	}
}

func TestEveryHelpHasAnExampleThatCanBeRun(t *testing.T) {
	withoutVariables(t)
	for name, c := range leaves(newApp(&bytes.Buffer{}, &bytes.Buffer{}).Commands, "promptspool") {
		lines := examplesOf(c, name)
		if len(lines) == 0 {
			t.Errorf("%s has no example: add a line to cmd/promptspool/examples.txt that begins with it", name)
		}
		for _, words := range shellCommands(strings.Join(lines, "\n") + "\n") {
			if err := commandLineFault(words[1:]); err != nil {
				t.Errorf("%q: %v", words, err)
			}
		}
		for _, f := range c.Flags {
			names, _, _ := strings.Cut(cli.FlagStringer(f), "\t")
			_, placeholder, _ := strings.Cut(strings.Split(names, ",")[0], " ")
			if slices.Contains(config.Words(f), placeholder) || placeholder == "value" {
				t.Errorf("%s --%s: %q, which stands for its value, is one", name, f.Names()[0], placeholder)
			}
		}
	}
	for line := range strings.Lines(examples) {
		words := strings.Fields(strings.TrimPrefix(line, "promptspool"))
		if line != "\n" && (len(words) == 0 || commandLineFault(shellCommands(line)[0][1:]) != nil) {
			t.Errorf("the example %q is of no command", line)
		}
	}
}

func TestFailuresExitWith1(t *testing.T) {
	withoutVariables(t)
	hostile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Promptspool-Version", "9")
		w.WriteHeader(422)
		_, _ = w.Write([]byte(`{"error":"invalid","message":"Bad \u001b[2Jfilter.",` +
			`"fields":[{"field":"a\u009b","reason":"is\nodd"}]}`))
	}))
	t.Cleanup(hostile.Close)
	t.Setenv("PROMPTSPOOL_KEY", "ps_secret")
	got := say(t, "requests", "search", "--url", hostile.URL)
	Equal(t, "a server's error", got, said{Code: 1, Err: "promptspool: Bad  [2Jfilter.\n  a  is odd\n"})
	for _, json := range []string{"-ojson", "--output=json", "-o ndjson"} {
		got = say(t, append(strings.Fields(json), "requests", "search", "--url", hostile.URL)...)
		Equal(t, "the same as JSON", got, said{Code: 1, Err: `{"success":false,"error":"invalid",` +
			`"message":"Bad \u001b[2Jfilter.","fields":[{"field":"a\u009b","reason":"is\nodd"}]}` + "\n"})
	}
	Equal(t, "wrong usage as JSON", say(t, "requests", "search", "--limt", "-o", "json"), said{Code: 2,
		Err: `{"success":false,"error":"usage","message":"flag provided but not defined: --limt; ` +
			`did you mean --limit?","fields":[]}` + "\n"})

	dir := t.TempDir()
	got = say(t, "keys", "list", "--data", dir)
	if got.Code != 1 || !strings.Contains(got.Err, "no process runs on the data folder "+dir) {
		t.Errorf("a folder without a process: %+v", got)
	}
}
