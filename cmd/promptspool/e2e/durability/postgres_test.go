//go:build linux

package durability

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
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
		server.Call("POST", "/v1/traces", fmt.Sprintf(`{"resourceSpans":[{"scopeSpans":[{"spans":[{
			"traceId":"5b8efff798038103d269b633813fc60c","spanId":%q,"name":"call",
			"startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000001000000000","attributes":[
			{"key":"openinference.span.kind","value":{"stringValue":"LLM"}},
			{"key":"llm.model_name","value":{"stringValue":"gpt-4o"}},
			{"key":%q,"value":{"stringValue":%q}}]}]}]}]}`, span, key, value), "X-API-KEY", harness.AdminKey)
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

// failing is a database that a scene ends.
type failing struct {
	dsn        string
	kill, stop func() // and start it again
}

// startFailing makes a database on a server of its own. On Citus it is spread, and a node
// crashes instead: kill takes the workers in turn, and stop the coordinator.
func startFailing(t *testing.T) failing {
	t.Helper()
	if os.Getenv("TEST_CITUS_DSN") != "" {
		dsn := postgrestest.DSN(t)
		workers, n := postgrestest.Workers(t, dsn), 0
		kill := func() {
			postgrestest.Crash(t, workers[n%len(workers)])
			n++
		}
		return failing{dsn, kill, func() { postgrestest.Crash(t, dsn) }}
	}

	db := postgrestest.Start(t, postgrestest.Options{Fsync: true})
	again := func(end func(testing.TB)) func() {
		return func() {
			end(t)
			harness.PauseFor(time.Duration(rand.IntN(400)) * time.Millisecond)
			db.Restart(t)
		}
	}
	return failing{db.Database(t), again(db.Kill), again(db.Stop)}
}

// Servers that share a database, their sidecars and the database itself are killed at
// random. The long form has two sidecars for each server, and the race detector: it
// takes several times the processor, and what threads of one process do to each other
// is raced in the package of the store.
func TestKillingServersSidecarsAndTheirDatabaseLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	db := startFailing(t)
	dsn := db.dsn
	pairs := 1
	if harness.Soak(t, 1) > 0 {
		harness.WatchForRaces(t)
		pairs = 2
	}

	var servers [2]*harness.Node
	var serverAt [2]string
	sidecars, data, at := make([]*harness.Node, 2*pairs), make([]string, 2*pairs), make([]string, 2*pairs)
	// The second as behind a pool that works by transaction.
	dsns := [2]string{dsn, dsnWith(t, dsn, "default_query_exec_mode", "cache_describe")}

	startServer := func(i int) { servers[i] = startShared(t, dsns[i], fmt.Sprint("central-", i+1), serverAt[i]) }
	startSidecar := func(i int) {
		sidecars[i] = harness.Launch(t, data[i], at[i],
			"sidecar", "--name", fmt.Sprintf("pod-%d", i+1), "--upstream", "http://"+serverAt[i%2])
	}

	for i := range servers {
		serverAt[i] = harness.FreePort(t)
		startServer(i)
	}
	for i := range sidecars {
		data[i], at[i] = t.TempDir(), harness.FreePort(t)
		startSidecar(i)
	}

	oracles := make([]*harness.Oracle, pairs)
	for i := range oracles {
		oracles[i] = harness.StartOracle(t, harness.AdminKey)
		oracles[i].LoadBoth(sidecars[2*i], sidecars[2*i+1], 4, 1000)
	}
	const killServer, killDatabase, stopDatabase = 0, 2, 3 // the rest are the sidecars
	for round := range harness.Rounds(t, 8, 0.1) {
		harness.PauseFor(time.Duration(100+rand.IntN(400)) * time.Millisecond)
		victim := rand.IntN(4 + len(sidecars))
		if round < 6 {
			victim = []int{4, killServer, killDatabase, 5, killServer + 1, stopDatabase}[round] // each at least once
		}
		switch victim {
		case killServer, killServer + 1:
			servers[victim].Kill()
			startServer(victim)
		case killDatabase:
			db.kill()
		case stopDatabase:
			db.stop()
		default:
			sidecars[victim-4].Kill()
			startSidecar(victim - 4)
		}
	}

	for _, o := range oracles {
		o.Halt()
	}
	for _, s := range sidecars {
		// The long form leaves much.
		harness.Reached(t, 5*time.Minute, func() bool { return s.Waiting() == 0 }, "a spool does not empty")
		if status := s.SpoolStatus(); status["gaps"] != 0.0 || status["dead"] != 0.0 || status["held"] != 0.0 {
			t.Errorf("the spool says %v", status)
		}
	}

	postgrestest.Recover(t, dsn)
	for _, o := range oracles {
		for _, s := range servers { // they must agree
			if a := o.WantAll(s); a.Acked < 20 || a.Scored < 40 {
				t.Errorf("only %d writes and %d scores were acked; the test shows nothing", a.Acked, a.Scored)
			}
		}
	}

	// The oracle notices missing records: half of them are deleted behind the servers'
	// back. So does the check.
	conn := postgrestest.Connect(t, dsn)
	check := func() (string, int) {
		out, errs, code := harness.RunWith(t, nil, "archive", "check", "--archive", dsn)
		return out + errs, code
	}
	if printed, code := check(); code != 1 || !strings.Contains(printed, "stop them first") {
		t.Errorf("a check of a database that servers use: %d %s", code, printed)
	}

	for _, n := range append(servers[:], sidecars...) {
		n.Stop()
	}
	if printed, code := check(); code != 0 || !strings.Contains(printed, "Sound") {
		t.Errorf("a check after all the kills: %d %s", code, printed)
	}

	startServer(0)
	execute(t, conn, `DELETE FROM record_states WHERE get_byte(uuid_send(request_id), 15) % 2 = 0`)
	for _, o := range oracles {
		if a := o.Verify(servers[0]); a.Lost == 0 || a.There+a.Lost != a.Acked {
			t.Errorf("half of the records were deleted, but the oracle says %+v", a)
		}
	}
	servers[0].Stop()
	if printed, code := check(); code != 1 || !strings.Contains(printed, "damaged") {
		t.Errorf("half of the records were deleted, but the check says %d %s", code, printed)
	}
}

func parsed(t *testing.T, dsn string) *url.URL {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
