package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

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

// withoutVariables removes the variables that the machine sets for promptspool.
func withoutVariables(t *testing.T) {
	t.Helper()
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
			if f.GetUsage() == "" || strings.Contains(f.GetUsage(), "default") && f.Names()[0] != "bootstrap-key" {
				t.Errorf("%s --%s: its usage %q is empty, or names the default, which the help adds by itself",
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
		"PROMPTSPOOL_OUTPUT PROMPTSPOOL_UTC")
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
		{"keys", "frob", "there is no command \"frob\""},
		{"", "--frob", "flag provided but not defined: --frob"},
		{"server", "--frob", "flag provided but not defined: --frob"},
		{"keys list", "--data", "flag needs an argument: --data"},
		{"server", "", "--data (or PROMPTSPOOL_DATA) is missing: data folder (created if missing)"},
		{"server", "more", "\"more\" is too much: this command takes flags only"},
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
		{"keys revoke", "--data x", "give the id of one key; `promptspool keys list` shows them"},
		{"requests get", "", "give one request id, or its beginning as `promptspool requests search` lists it"},
		{"requests get", "id --url http://h",
			"--key (or PROMPTSPOOL_KEY) is missing: a key of scope full, as promptspool keys create " +
				"--scope full makes; better given by its variable"},
		{"requests get", "id --key k --url h",
			"--url (or PROMPTSPOOL_URL): \"h\" is not the URL of a server; give one such as " +
				"http://127.0.0.1:8788"},
		{"requests search", "--key k --metadata x",
			"--metadata (or PROMPTSPOOL_REQUESTS_SEARCH_METADATA): \"x\" is not key=value"},
		{"requests search", "--key k --status foo",
			"--status (or PROMPTSPOOL_REQUESTS_SEARCH_STATUS): \"foo\" is wrong: it is one of: SUCCESS, " +
				"WARNING, ERROR"},
		{"requests stats", "--key k --cost 5..1",
			"--cost (or PROMPTSPOOL_REQUESTS_STATS_COST): \"5..1\" is wrong: the range ends before it " +
				"begins"},
		{"requests search", "--key k --sort foo",
			"--sort (or PROMPTSPOOL_REQUESTS_SEARCH_SORT): \"foo\" is not one of list_time, " +
				"accepted_at, request_start_time, input_tokens, output_tokens, cost, latency_ms, " +
				"time_to_first_token_ms, status"},
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

func TestHelpExitsWith0(t *testing.T) {
	withoutVariables(t)
	for line, want := range map[string]string{
		"":                       "COMMANDS:",
		"--help":                 "COMMANDS:",
		"keys":                   "promptspool keys command",
		"keys --help":            "promptspool keys command",
		"server --help":          "--data folder ",
		"requests search --help": "--tag tag  ", // once, though it may be repeated
		"requests get -h":        "REQUEST_ID",
		"up --help":              "(default: 127.0.0.1:8787) [$PROMPTSPOOL_LISTEN]",
		"--version":              "promptspool version " + version,
	} {
		got := say(t, strings.Fields(line)...)
		if got.Code != 0 || got.Err != "" || !strings.Contains(got.Out, want) {
			t.Errorf("%q ends with %d %q and without %q:\n%s", line, got.Code, got.Err, want, got.Out)
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

	dir := t.TempDir()
	got = say(t, "keys", "list", "--data", dir)
	if got.Code != 1 || !strings.Contains(got.Err, "no process runs on the data folder "+dir) {
		t.Errorf("a folder without a process: %+v", got)
	}
}
