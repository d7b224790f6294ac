//go:build linux

package durability

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/spool/database/postgres/postgrestest"
)

// startShared starts a server whose archive is a PostgreSQL database.
func startShared(t *testing.T, dsn, name, addr string, more ...string) *harness.Node {
	t.Helper()
	n := harness.Begin(t, harness.Program(t), []string{"PROMPTSPOOL_ARCHIVE=" + dsn}, t.TempDir(), addr,
		append([]string{"server", "--name", name}, more...)...)
	if !n.Takes() {
		t.Fatalf("%s ended before it took calls:\n%s", name, n.Logged())
	}
	return n
}

// dsnWith adds a setting to a connection string.
func dsnWith(t *testing.T, dsn, name, value string) string {
	t.Helper()
	u := parsed(t, dsn)
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}

func execute(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func TestWhatOneServerDoesAnotherOfTheSameDatabaseKnows(t *testing.T) {
	t.Parallel()
	dsn := postgrestest.DSN(t)
	a := startShared(t, dsn, "a", harness.FreePort(t))
	// The second as behind a pool that works by transaction.
	b := startShared(t, dsnWith(t, dsn, "default_query_exec_mode", "cache_describe"), "b", harness.FreePort(t))
	sidecar := harness.StartSidecar(t, t.TempDir(), b.Addr)

	// Halves of a call: LangChain's, which has its id in the result only, and that of the provider's client.
	half := func(server *harness.Node, span, key, value string) {
		server.Call("POST", "/v1/traces", fmt.Sprintf(`{"resourceSpans":[{"scopeSpans":[{"scope":{"name":%q},"spans":[{
			"traceId":"5b8efff798038103d269b633813fc60c","spanId":%q,"name":"call",
			"startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000001000000000","attributes":[
			{"key":"openinference.span.kind","value":{"stringValue":"LLM"}},
			{"key":"llm.model_name","value":{"stringValue":"gpt-4o"}},
			{"key":%q,"value":{"stringValue":%q}}]}]}]}]}`, key, span, key, value), "X-API-KEY", harness.AdminKey)
	}
	half(a, "eee19b7ec3c1b174", "output.value",
		`{"generations":[[{"text":"Hi","message":{"kwargs":{"content":"Hi","id":"chatcmpl-Ay5LM9hCKy4Zp0sXVeVY"}}}]]}`)
	half(b, "eee19b7ec3c1b175", "gen_ai.response.id", "chatcmpl-Ay5LM9hCKy4Zp0sXVeVY")
	for _, server := range []*harness.Node{a, b} {
		r := server.Call("POST", "/api/public/v2/requests/search", "{}", "X-API-KEY", harness.AdminKey)
		found, _ := r.JSON["items"].([]any)
		if len(found) != 1 {
			t.Fatalf("of one call a server lists %d requests: %s", len(found), r.Body)
		}
		id := found[0].(map[string]any)["id"].(string)
		if others, _ := server.Get("/api/public/v2/requests/" + id).JSON["other_reports"].([]any); len(others) != 1 {
			t.Errorf("a server knows %d other reports of the call", len(others))
		}
	}

	// Records and keys.
	id := a.Track("/rest/track-request", harness.AdminKey, harness.Chat())
	if r := b.Get("/api/public/v2/requests/" + id); r.Status != 200 {
		t.Errorf("a record of one server: the other answers %d %s", r.Status, r.Body)
	}
	out, errs, code := harness.RunWith(t, nil, "keys", "create", "--data", a.Data, "-o", "json", "--scope", "full")
	if code != 0 {
		t.Fatal(errs)
	}
	made := harness.Decode(out)
	key := made["key"].(string)
	search := func() int { return b.Call("POST", "/api/public/v2/requests/search", "{}", "X-API-KEY", key).Status }
	if status := search(); status != 200 {
		t.Errorf("a key made at one server: the other answers %d", status)
	}
	if _, errs, code := harness.RunWith(t, nil, "keys", "revoke", "--data", a.Data, made["id"].(string)); code != 0 {
		t.Fatal(errs)
	}
	if status := search(); status != 401 {
		t.Errorf("a key revoked at one server: the other answers %d", status)
	}

	// A person who signed up at one server is signed in at the other.
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	form := url.Values{"code": {harness.SetupCode(b)}, "email": {"ann@example.com"},
		"password": {"correct horse battery"}}
	res, err := browser.PostForm("http://"+a.Addr+"/sign-up", form)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	for _, c := range jar.Cookies(&url.URL{Scheme: "http", Host: a.Addr, Path: "/"}) {
		jar.SetCookies(&url.URL{Scheme: "http", Host: b.Addr, Path: "/"}, []*http.Cookie{c})
	}
	res, err = browser.Get("http://" + b.Addr + "/people")
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	_, _ = page.ReadFrom(res.Body)
	_ = res.Body.Close()
	if res.StatusCode != 200 || !strings.Contains(page.String(), "ann@example.com") {
		t.Errorf("a person signed in at one server sees %d at the other: %.300s", res.StatusCode, page.String())
	}

	// A link that an operator makes beside one server works at the other, and ends the session at both.
	link := harness.LinkPath(t, harness.PeopleSay(t, a, "reset-password", "ann@example.com"))
	_, reset, _ := strings.Cut(link, "code=")
	password := url.Values{"code": {reset}, "password": {"another good password"}}
	if res, err = http.PostForm("http://"+b.Addr+"/reset-password", password); err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res, err = browser.Get("http://" + a.Addr + "/people"); err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.Request.URL.Path != "/sign-in" {
		t.Errorf("after a reset at one server, the other shows %s", res.Request.URL)
	}

	// A label that moves at one server reaches a sidecar of the other within a second.
	// The machine may be busy: the best of three counts.
	for number := 1; number <= 2; number++ {
		content := fmt.Sprint("number ", number)
		body := map[string]any{
			"prompt_template": map[string]any{"prompt_name": "greet"},
			"prompt_version": map[string]any{
				"prompt_template": map[string]any{"type": "completion", "content": content},
			},
		}
		if number == 1 {
			body["release_labels"] = []string{"prod"}
		}
		if r := a.Call("POST", "/rest/prompt-templates", body, "X-API-KEY", harness.AdminKey); r.Status != 201 {
			t.Fatalf("publish: %d %s", r.Status, r.Body)
		}
	}
	version := func() string {
		r := sidecar.Call("POST", "/prompt-templates/greet", map[string]any{"label": "prod"}, "X-API-KEY",
			harness.AdminKey)
		return fmt.Sprint(r.JSON["version"])
	}

	best := time.Hour
	for _, number := range []int{2, 1, 2} {
		missing := func() string { return "the label does not come" }
		sidecar.Eventually(func() bool { return version() == fmt.Sprint(3-number) }, missing)
		begun := time.Now()
		label := map[string]any{"name": "prod", "prompt_version_number": number}
		if r := a.Call("POST", "/prompts/1/label", label, "X-API-KEY", harness.AdminKey); r.Status != 200 {
			t.Fatalf("label: %d %s", r.Status, r.Body)
		}
		sidecar.Eventually(func() bool { return version() == fmt.Sprint(number) }, missing)
		best = min(best, time.Since(begun))
	}
	if best > time.Second {
		t.Errorf("a label that one server moved came to a sidecar of the other after %v", best)
	}
	t.Logf("a moved label came after %v", best)
}

func parsed(t *testing.T, dsn string) *url.URL {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
