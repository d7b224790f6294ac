package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"promptspool/api/ops"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
)

// answering is a server that records the last call and always gives the same response.
func answering(t *testing.T, answer string) (url string, call *string) {
	t.Helper()
	call = new(string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*call = fmt.Sprintf("%s %s %s %s",
			r.Header.Get("X-API-KEY"), r.Method, r.RequestURI, strings.TrimSpace(string(body)))
		w.Header().Set("Promptspool-Version", "9")
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	return server.URL, call
}

func TestReprice(t *testing.T) {
	withoutVariables(t)
	url, call := answering(t,
		`{"success":true,"seen":5,"changed":3,"parts":{"tokens":2,"price":2,"text":1},"done":true}`)
	got := say(t, "requests", "reprice", "--cursor", "here", "--url", url, "--key", "k")
	Equal(t, "call", *call, `k POST /api/public/v2/requests/reprice {"cursor":"here"}`)
	Equal(t, "table", got, said{Out: "" +
		"records   5\n" +
		"changed   3\n" +
		"  tokens  2\n" +
		"  price   2\n" +
		"  status  0\n" +
		"  model   0\n" +
		"  text    1\n"})
	got = say(t, "requests", "reprice", "-o", "json", "--url", url, "--key", "k")
	parts := `"parts":{"tokens":2,"price":2,"status":0,"model":0,"text":1}`
	if !strings.Contains(strings.Join(strings.Fields(got.Out), ""), parts) {
		t.Errorf("as JSON it is %s", got.Out)
	}
}

func TestSearch(t *testing.T) {
	withoutVariables(t)
	cursor := strings.Repeat("c", 200)
	url, call := answering(t, `{"success":true,"next_cursor":"`+cursor+`","items":[
		{"request_id":"r1","list_time":"2026-03-01T12:00:00Z","engine":"m\u001b[2J","latency":1.25,
		 "input_tokens":3,"output_tokens":4,"status":"SUCCESS","input_excerpt":"Hi","output_excerpt":"Hello\nthere",
		 "tags_array":["a","b"],"scores":[{"name":"default","score":87}]},
		{"request_id":"r2","list_time":"2026-03-01T12:00:00Z","status":"ERROR","input_excerpt":"Hi"}]}`)
	t.Setenv("PROMPTSPOOL_URL", url)
	t.Setenv("PROMPTSPOOL_KEY", "k")
	t.Setenv("PROMPTSPOOL_NAME", "a pod's, which narrows nothing")
	got := say(t, "requests", "search", "--utc", "--tag", "a,b", "--metadata", "k=v=w,x", "--model", "m",
		"--after", "2026-01-01", "--limit", "5", "--cursor", "here")
	Equal(t, "call", *call, `k POST /api/public/v2/requests/search {"filter_group":{"logic":"AND","filters":[`+
		`{"field":"tags","operator":"is","value":"a,b"},`+
		`{"field":"metadata","operator":"is","value":"v=w,x","nested_key":"k"},`+
		`{"field":"model","operator":"is","value":"m"},`+
		`{"field":"list_time","operator":"gte","value":"2026-01-01T00:00:00Z"}]},`+
		`"per_page":5,"cursor":"here"}`)

	const at = "2026-03-01 12:00:00 UTC"
	Equal(t, "table", got, said{Out: "" +
		"REQUEST ID  STATUS   STARTED                  TEMPLATE  TEXT              LATENCY  " +
		"COST  MODEL  TOKENS  SCORES      TAGS\n" +
		"r1          SUCCESS  " + at + "            Hi → Hello there   1.25 s     -  m [2J     3+4  default=87  a,b\n" +
		"r2          ERROR    " + at + "            Hi                      -     -              -\n" +
		"\nMore: --cursor " + cursor + "\n"})

	for _, page := range []string{"0", "x", "100001"} {
		if got := say(t, "requests", "search", "--page", page); got.Code != 2 {
			t.Errorf("page %s: %+v", page, got)
		}
	}
	say(t, "requests", "search", "--page", "3")
	Equal(t, "call for a page", *call, `k POST /api/public/v2/requests/search {"page":3,"per_page":20}`)
	got = say(t, "requests", "search", "-o", "json")
	Equal(t, "call for everything", *call, `k POST /api/public/v2/requests/search {"per_page":20}`)
	if got.Code != 0 || !strings.Contains(got.Out, `"request_id": "r2"`) || strings.Contains(got.Out, "\x1b") {
		t.Errorf("JSON: %+v", got)
	}
	Equal(t, "fields", say(t, "requests", "search", "--json", "request_id,user_id", "--jq", ".[]"), said{
		Out: `{"request_id":"r1","user_id":null}` + "\n" + `{"request_id":"r2","user_id":null}` + "\n",
		Err: "More: --cursor " + cursor + "\n"})
	for _, form := range []string{"table", "csv"} {
		got := say(t, "requests", "search", "--columns", "started_at,latency_seconds", "--utc", "-o", form)
		if got.Code != 0 || !strings.Contains(got.Out, "2026-03-01") || !strings.Contains(got.Out, "1.25") {
			t.Errorf("the names of a CSV: %+v", got)
		}
	}
	got = say(t, "requests", "search", "--json", "user")
	if got.Code != 2 || !strings.Contains(got.Err, `environment; did you mean user_id?","fields":[]}`) {
		t.Errorf("a field that does not exist: %+v", got)
	}
}

func TestShowATemplate(t *testing.T) {
	withoutVariables(t)
	url, call := answering(t, `{"success":true,"id":7,"prompt_name":"a/b","version":2,"release_labels":["prod"],`+
		`"tags":[],"commit_message":"m","prompt_template":{"a":"<b>"}}`)
	got := say(t, "templates", "show", "a/b", "--version", "2", "--label", "prod", "--url", url, "--key", "k")
	Equal(t, "call", *call, "k GET /prompt-templates/a%2Fb?label=prod&version=2 ")
	Equal(t, "template", got, said{Out: "template  a/b\nid        7\nversion   2\nlabels    prod\n" +
		"tags\nmessage   m\n{\n  \"a\": \"<b>\"\n}\n"})
}

func TestListTemplates(t *testing.T) {
	withoutVariables(t)
	url, call := answering(t, `{"success":true,"items":[{"id":7,"prompt_name":"a","version":2,`+
		`"labels":[{"name":"prod","version":1}],"tags":["x","y"]}]}`)
	got := say(t, "templates", "list", "--name", "a", "--url", url, "--key", "k")
	Equal(t, "call", *call, "k GET /prompt-templates?name=a&page=1&per_page=100 ")
	Equal(t, "list", got, said{Out: "ID  NAME  LATEST  LABELS  TAGS\n 7  a          2  prod=1  x,y\n"})
}

func TestADiffExitsAsDiffDoes(t *testing.T) {
	withoutVariables(t)
	file := filepath.Join(t.TempDir(), "greet.yaml")
	if err := os.WriteFile(file, []byte("messages:\n- role: user\n  content: Hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const none = `{"success":true,"items":[]}`
	same := `{"success":true,"items":[{"id":1,"prompt_name":"greet","version":1,"prompt_template":` +
		`{"type":"chat","input_variables":[],"messages":[{"role":"user","input_variables":[],` +
		`"content":[{"type":"text","text":"Hello"}]}]}}]}`
	for _, tt := range []struct {
		folder, answer string
		code           int
	}{
		{filepath.Dir(file), same, 0},
		{filepath.Dir(file), none, 1},
		{filepath.Dir(file), `no JSON`, 2},
		{file, none, 2},
	} {
		url, _ := answering(t, tt.answer)
		args := []string{"templates", "diff", tt.folder, "--url", url, "--key", "k"}
		got, plain := say(t, append(args, "--exit-code")...), say(t, args...)
		if got.Code != tt.code || (plain.Code == 0) != (tt.code < 2) || (got.Err == "") != (tt.code == 0) {
			t.Errorf("%s, %s: %+v, without --exit-code %+v", tt.folder, tt.answer, got, plain)
		}
	}
}

func TestAFolderIsNotLeft(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret.yaml")
	if err := os.WriteFile(outside, []byte("content: a secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	withoutVariables(t)
	if got := say(t, "templates", "push", dir, "--key", "k"); got.Code != 1 || !strings.Contains(got.Err, "escapes") {
		t.Errorf("%+v", got)
	}
}

// oneKey is a server with one good key.
type oneKey struct{}

func (oneKey) CreateKey(_ context.Context, n wire.NewKey) (wire.Secret, wire.Key, error) {
	return "ps_new", wire.Key{ID: "key_2", AccountName: n.Account, Name: n.Name, Scope: n.Scope,
		Prefix: n.Prefix, ExpiresAt: n.ExpiresAt}, nil
}

func (oneKey) Keys(context.Context) ([]wire.Key, error) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return []wire.Key{
		{ID: "key_1", AccountName: "acme", Scope: wire.ScopeFull, Name: "n", CreatedAt: at, LastUsedAt: &at},
		{ID: "key_0", RevokedAt: &at, CreatedAt: at},
	}, nil
}

func (oneKey) RotateKey(
	_ context.Context, id string, overlap time.Duration,
) (secret wire.Secret, made, old wire.Key, err error) {
	end := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(overlap)
	return "ps_next", wire.Key{ID: "key_3", AccountName: "acme"}, wire.Key{ID: id, ExpiresAt: &end}, nil
}

func (oneKey) RevokeKey(_ context.Context, id string) (wire.Key, error) {
	return wire.Key{ID: id, AccountName: "acme"}, nil
}

// controlled makes a data folder with a process that has these keys, or none, and this
// status.
func controlled(t *testing.T, keys wire.Keys, status any) (dir string) {
	t.Helper()
	return controlledBy(t, ops.ControlConfig{Keys: keys, Status: func() any { return status }})
}

// controlledBy makes a data folder with a process that can be controlled in these ways.
func controlledBy(t *testing.T, config ops.ControlConfig) (dir string) {
	t.Helper()
	dir = t.TempDir()
	ln, err := ops.ListenControl(dir)
	if err != nil {
		t.Fatal(err)
	}
	config.Logger = slog.New(slog.DiscardHandler)
	server := ops.NewControl(config)
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	t.Cleanup(func() {
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestKeys(t *testing.T) {
	withoutVariables(t)
	t.Setenv("PROMPTSPOOL_DATA", controlled(t, oneKey{}, nil))
	const at = "2026-03-01 12:00:00 UTC"
	Equal(t, "create", say(t, "keys", "create", "--project", "acme", "--scope", "full"),
		said{Out: "key      ps_new\nid       key_2\n" +
			"name     none: --name gives the next key one\nproject  acme\nscope    full\n" +
			"         It is not shown again: the server keeps a hash only.\n"})
	Equal(t, "list", say(t, "keys", "list", "--utc"), said{Out: "" +
		"ID     PROJECT  SCOPE  NAME  CREATED                  LAST USED                " +
		"STATE    EXPIRES  TEMPLATES\n" +
		"key_1  acme     full   n     " + at + "  " + at + "  active   -\n" +
		"key_0           none         " + at + "  -                        revoked  -\n"})
	Equal(t, "create with an end", say(t, "keys", "create",
		"--scope", "log", "--name", "bot", "--prefix", "a/", "--expires", "2100-01-31", "--utc"), said{Out: "" +
		"key        ps_new\nid         key_2\nname       bot\nproject    default\nscope      log\n" +
		"templates  a/\nexpires    2100-01-31 00:00:00 UTC\n" +
		"           It is not shown again: the server keeps a hash only.\n"})
	got := say(t, "keys", "create", "--expires", "yesterday")
	if got.Code != 2 || !strings.Contains(got.Err, "no time in the future") {
		t.Errorf("an end in the past: %+v", got)
	}
	Equal(t, "rotate", say(t, "keys", "rotate", "key_1", "--overlap", "1h", "--utc"), said{Out: "" +
		"key      ps_next\nid       key_3\n" +
		"name     none: --name gives the next key one\nproject  acme\nscope    none\n" +
		"         It is not shown again: the server keeps a hash only.\n" +
		"         It replaces key_1, which ends at 2026-03-01 13:00:00 UTC.\n"})
	for _, id := range []string{"key_1", "a/b", "what?x=1#y", "50%"} { // a mistyped id never becomes another one
		Equal(t, "revoke", say(t, "keys", "revoke", id), said{Out: "Key " + id + " of acme is revoked.\n"})
	}
}

// Where up was started, its data folder need not be named.
func TestCommandsFindTheDataFolderOfUp(t *testing.T) {
	withoutVariables(t)
	t.Chdir(t.TempDir())
	got := say(t, "keys", "list")
	if got.Code != 2 || !strings.Contains(got.Err, "--data (or PROMPTSPOOL_DATA) is missing") {
		t.Errorf("without one: %+v", got)
	}

	if err := os.Mkdir(".promptspool", 0o700); err != nil {
		t.Fatal(err)
	}
	for role, data := range map[string]string{
		"server":  controlled(t, oneKey{}, serverStatus{Role: "server", Name: "central"}),
		"sidecar": controlled(t, nil, sidecarStatus{Role: "sidecar", Name: "pod"}),
	} {
		if err := os.Symlink(data, filepath.Join(".promptspool", role)); err != nil {
			t.Fatal(err)
		}
	}
	if got := say(t, "keys", "list"); got.Code != 0 || !strings.Contains(got.Out, "key_1") {
		t.Errorf("keys: %+v", got)
	}
	if err := os.Rename(".promptspool", ".promptspool-demo"); err != nil {
		t.Fatal(err)
	}
	got = say(t, "status")
	if got.Code != 0 || !strings.Contains(got.Out, "central") || !strings.Contains(got.Out, "pod") {
		t.Errorf("status: %+v", got)
	}
	if got := say(t, "restore", "file"); got.Code != 2 || !strings.Contains(got.Err, "--data") {
		t.Errorf("nothing is restored over it: %+v", got)
	}
}

func TestKeysOfAProcessThatHasNone(t *testing.T) {
	withoutVariables(t)
	Equal(t, "list", say(t, "keys", "list", "--data", controlled(t, nil, nil)),
		said{Code: 1, Err: "promptspool: This process keeps no keys; a server does. " +
			"Give the server's data folder as --data.\n"})
}

// Compose's health checks are this command.
func TestTheStatusOfAProcessThatIsNotReadyFails(t *testing.T) {
	withoutVariables(t)
	dir := controlledBy(t, ops.ControlConfig{
		Status: func() any { return sidecarStatus{Role: "sidecar", Name: "pod"} },
		Ready:  func() error { return errors.New("the disk is full") },
	})
	got := say(t, "status", "--data", dir)
	if got.Code != 1 || got.Err != "promptspool: Not ready: the disk is full.\n" ||
		!strings.HasPrefix(got.Out, "sidecar       pod, version") {
		t.Errorf("it is told %+v", got)
	}
}

func TestTheStatusOfASidecarSaysWhyEventsWait(t *testing.T) {
	withoutVariables(t)
	s := sidecarStatus{Role: "sidecar", Name: "pod", Upstream: "http://central"}
	data := controlled(t, nil, s)
	if got := say(t, "status", "--data", data); strings.Contains(got.Out, "wait:") {
		t.Errorf("none waits, and: %+v", got)
	}

	s.Away = true
	s.Waits = "A proxy answered."
	got := say(t, "status", "--data", controlled(t, nil, s))
	if !strings.Contains(got.Out, "http://central\n") ||
		!strings.Contains(got.Out, "Events wait: A proxy answered.") {
		t.Errorf("it is told %+v", got)
	}
}

func TestSpoolStatusOfAServer(t *testing.T) {
	withoutVariables(t)
	dir := controlled(t, oneKey{}, serverStatus{Role: "server"})
	Equal(t, "status", say(t, "spool", "status", "--data", dir), said{Code: 2,
		Err: "promptspool: --data (or PROMPTSPOOL_DATA): \"" + dir +
			"\" is the folder of a server, which has no spool; give a sidecar's\n" +
			"See `promptspool spool status --help`.\n"})
}

// Where `up` was started, commands need neither its address nor its key.
func TestCommandsFindTheServerOfUpHere(t *testing.T) {
	withoutVariables(t)
	t.Chdir(t.TempDir())
	search := func(args ...string) said { return say(t, append([]string{"requests", "search"}, args...)...) }
	serve := func(name string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Promptspool-Version", "9")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprintf(w, `{"error":"unauthorized","message":"%s has %s."}`, name, r.Header.Get("X-API-KEY"))
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	here, other := serve("up"), serve("other")

	// Nothing is asked about a folder whose process is away: another may have its port by now.
	server, key := filepath.Join(".promptspool", "server"), filepath.Join(".promptspool", "key")
	if err := errors.Join(os.MkdirAll(server, 0o700), os.WriteFile(key, []byte("k1\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if got := search(); got.Code != 2 || !strings.Contains(got.Err,
		"--key (or PROMPTSPOOL_KEY) is missing, and not found in .promptspool: its server does not answer; start") {
		t.Errorf("it does not run: %+v", got)
	}

	socket, err := ops.ListenControl(server)
	if err != nil {
		t.Fatal(err)
	}
	control := ops.NewControl(ops.ControlConfig{Server: here, Logger: slog.New(slog.DiscardHandler)})
	go func() { _ = control.Serve(socket) }()
	t.Cleanup(func() { _ = control.Shutdown(context.Background()) })

	found := "\nThis asked " + here + ": no server is named, and .promptspool is here.\n"
	for args, want := range map[string]string{
		"":                        "up has k1." + found,
		"--key k9":                "up has k9." + found,
		"--url " + other:          "--key (or PROMPTSPOOL_KEY) is missing: ", // the key is for no other server
		"--key k9 --url " + other: "other has k9.\n",
		"--context prod":          "is not a context",
		"-o json":                 `up has k1.\nThis asked ` + here,
	} {
		if got := search(strings.Fields(args)...); !strings.Contains(got.Err, want) {
			t.Errorf("%q: %s", args, got.Err)
		}
	}
	t.Setenv("PROMPTSPOOL_URL", other)
	t.Setenv("PROMPTSPOOL_KEY", "k3")
	Equal(t, "variables", search().Err, "promptspool: other has k3.\n")
	t.Setenv("PROMPTSPOOL_URL", "")
	t.Setenv("PROMPTSPOOL_KEY", "")

	contexts := config.Contexts{Current: "prod", Named: map[string]config.Context{"prod": {URL: other, Key: "k2"}}}
	if err := contexts.Save(); err != nil {
		t.Fatal(err)
	}
	Equal(t, "a context", search().Err, "promptspool: other has k2.\n")
	if err := (config.Contexts{}).Save(); err != nil {
		t.Fatal(err)
	}

	if err := os.Chmod(key, 0o640); err != nil {
		t.Fatal(err)
	}
	if got := search(); got.Code != 2 || !strings.Contains(got.Err, "make it yours alone with chmod 600") {
		t.Errorf("a key that others can open: %+v", got)
	}
}

// Two servers are kept, and each gets its own key and no other.
func TestContextsKeepServersAndTheirKeys(t *testing.T) {
	withoutVariables(t)
	asked := ""
	serve := func(name, good string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			key := r.Header.Get("X-API-KEY")
			asked = name + " with " + key
			w.Header().Set("Promptspool-Version", "9")
			if key != good {
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = w.Write([]byte(`{"error":"unauthorized","message":"The key is not known."}`))
				return
			}
			_, _ = w.Write([]byte(`{"success":true,"account":"a","items":[]}`))
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	test, prod := serve("test", "k1"), serve("prod", "k2")
	search := func(args ...string) string {
		asked = "nobody"
		say(t, append([]string{"requests", "search"}, args...)...)
		return asked
	}

	Equal(t, "none", say(t, "contexts", "list"), said{Out: "None. `promptspool login URL` keeps one.\n"})
	Equal(t, "without a key", say(t, "login", test), said{Code: 2, Err: "promptspool: the key is missing: type it, " +
		"or give it by --key or PROMPTSPOOL_KEY\nSee `promptspool login --help`.\n"})
	if got := say(t, "login", test, "--key", "wrong"); got.Code != 1 || search() != "nobody" {
		t.Errorf("a key that the server refuses: %+v", got)
	}
	Equal(t, "login", say(t, "login", test, "--key", "k1"), said{
		Out: "Commands use " + test + " from now on, as context " + strings.TrimPrefix(test, "http://") + ".\n"})
	say(t, "login", prod, "--key", "k2", "--name", "prod")
	file := filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "promptspool", "contexts.json")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of keys: %v, %v", info, err)
	}
	Equal(t, "list", say(t, "contexts", "list", "--columns", "name,current"), said{Out: "NAME             CURRENT\n" +
		strings.TrimPrefix(test, "http://") + "\nprod             yes\n"})

	say(t, "contexts", "use", strings.TrimPrefix(test, "http://"))
	for _, tt := range []struct {
		args string
		want string
	}{
		{"", "test with k1"},
		{"--context prod", "prod with k2"},
		{"--key k9", "test with k9"},
		{"--url " + prod, "nobody"}, // a key of another server is not sent
		{"--url " + test, "test with k1"},
		{"--context prdo", "nobody"},
	} {
		Equal(t, tt.args, search(strings.Fields(tt.args)...), tt.want)
	}
	t.Setenv("PROMPTSPOOL_URL", prod)
	t.Setenv("PROMPTSPOOL_KEY", "k3")
	Equal(t, "variables", search(), "prod with k3")
	Equal(t, "a flag before variables", search("--context", "prod"), "prod with k2")
	t.Setenv("PROMPTSPOOL_URL", "")
	t.Setenv("PROMPTSPOOL_KEY", "")

	say(t, "contexts", "remove", strings.TrimPrefix(test, "http://"))
	Equal(t, "without one", search(), "nobody")
	got := say(t, "contexts", "use", "prdo")
	flagged := say(t, "requests", "search", "--context", "prdo")
	for _, got := range []said{got, flagged} {
		if got.Code != 2 || !strings.Contains(got.Err, "did you mean prod?") || strings.Contains(got.Err, "--key") {
			t.Errorf("a context that does not exist: %+v", got)
		}
	}
}

func TestTheStatusOfTheFleetSaysWhoNeedsAttention(t *testing.T) {
	withoutVariables(t)
	sidecar := func(id, more string) string {
		return `{"name":"pod","id":"` + id + `","version":"1","alive":true,"started_at":"2026-03-01T12:00:00Z",
			"last_seen":"2026-03-01T12:00:00Z"` + more + `}`
	}
	url, _ := answering(t, `{"success":true,"items":[`+sidecar("id-1", `,"same_name":true,"needs":["A.","B."]`)+`,`+
		sidecar("id-2", `,"same_name":true`)+`]}`)
	got := say(t, "status", "--url", url, "--key", "k")
	if got.Code != 0 || !strings.Contains(got.Out, "\npod id-1 needs attention: A. B.\n") ||
		!strings.Contains(got.Out, "  id-2\n") || strings.Contains(got.Out, "pod id-2 needs") {
		t.Errorf("%+v", got)
	}
}
