package e2e

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"promptspool/spool/archive/postgres/postgrestest"
)

// startShared starts a server whose archive is a PostgreSQL.
func startShared(t *testing.T, dsn, name, addr string) *node {
	t.Helper()
	n := begin(t, program(t), []string{"PROMPTSPOOL_ARCHIVE=" + dsn}, t.TempDir(), addr, "server", "--name", name)
	if !n.takes() {
		t.Fatalf("%s ended before it took calls:\n%s", name, n.logged())
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

// connect is a connection beside those of the servers.
func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
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
	a := startShared(t, dsn, "a", freePort(t))
	b := startShared(t, dsnWith(t, dsn, "default_query_exec_mode", "cache_describe"), "b", freePort(t)) // as behind a pool by transaction
	sidecar := startSidecar(t, t.TempDir(), b.addr)

	// Records and keys.
	id := a.track("/rest/track-request", adminKey, chat())
	if r := b.get("/api/public/v2/requests/" + id); r.Status != 200 {
		t.Errorf("what one server took, the other answers %d %s", r.Status, r.Body)
	}
	out, errs, code := runCommand(t, nil, "keys", "create", "--data", a.data, "-o", "json", "--scope", "full")
	if code != 0 {
		t.Fatal(errs)
	}
	made := decode(out)
	key := made["key"].(string)
	search := func() int { return b.call("POST", "/api/public/v2/requests/search", "{}", "X-API-KEY", key).Status }
	if status := search(); status != 200 {
		t.Errorf("a key made at one server is %d at the other", status)
	}
	if _, errs, code := runCommand(t, nil, "keys", "revoke", "--data", a.data, made["id"].(string)); code != 0 {
		t.Fatal(errs)
	}
	if status := search(); status != 401 {
		t.Errorf("a key revoked at one server is %d at the other", status)
	}

	// Somebody who signed up at one is signed in at the other.
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	form := url.Values{"code": {setupCode(b)}, "email": {"ann@example.com"}, "password": {"correct horse battery"}}
	res, err := browser.PostForm("http://"+a.addr+"/sign-up", form)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	for _, c := range jar.Cookies(&url.URL{Scheme: "http", Host: a.addr, Path: "/"}) {
		jar.SetCookies(&url.URL{Scheme: "http", Host: b.addr, Path: "/"}, []*http.Cookie{c})
	}
	res, err = browser.Get("http://" + b.addr + "/people")
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	_, _ = page.ReadFrom(res.Body)
	_ = res.Body.Close()
	if res.StatusCode != 200 || !strings.Contains(page.String(), "ann@example.com") {
		t.Errorf("who signed in at one server sees %d at the other: %.300s", res.StatusCode, page.String())
	}
	managesPeople(t, a, b)

	// A label that moves at one reaches a sidecar of the other within a second. The machine may be busy: the best of three counts.
	for number := 1; number <= 2; number++ {
		body := map[string]any{"prompt_template": map[string]any{"prompt_name": "greet"},
			"prompt_version": map[string]any{"prompt_template": map[string]any{"type": "completion", "content": fmt.Sprint("number ", number)}}}
		if number == 1 {
			body["release_labels"] = []string{"prod"}
		}
		if r := a.call("POST", "/rest/prompt-templates", body, "X-API-KEY", adminKey); r.Status != 201 {
			t.Fatalf("publish: %d %s", r.Status, r.Body)
		}
	}
	version := func() string {
		r := sidecar.call("POST", "/prompt-templates/greet", map[string]any{"label": "prod"}, "X-API-KEY", adminKey)
		return fmt.Sprint(r.JSON["version"])
	}
	best := time.Hour
	for _, number := range []int{2, 1, 2} {
		sidecar.eventually(func() bool { return version() == fmt.Sprint(3-number) }, func() string { return "the label does not come" })
		begun := time.Now()
		if r := a.call("POST", "/prompts/1/label", map[string]any{"name": "prod", "prompt_version_number": number}, "X-API-KEY", adminKey); r.Status != 200 {
			t.Fatalf("label: %d %s", r.Status, r.Body)
		}
		sidecar.eventually(func() bool { return version() == fmt.Sprint(number) }, func() string { return "the label does not come" })
		best = min(best, time.Since(begun))
	}
	if best > time.Second {
		t.Errorf("a label that one server moved came to a sidecar of the other after %v", best)
	}
	t.Logf("a moved label came after %v", best)
}

// Servers that share a database, their sidecars and the database itself are killed at random. The long form has two sidecars for each server.
func TestKillingServersSidecarsAndTheirDatabaseLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	watchForRaces(t)
	db := postgrestest.Start(t, postgrestest.Options{Fsync: true})
	dsn := db.Database(t)
	pairs := 1
	if soak(t, 1) > 0 {
		pairs = 2
	}
	var servers [2]*node
	var serverAt [2]string
	sidecars, data, at := make([]*node, 2*pairs), make([]string, 2*pairs), make([]string, 2*pairs)
	dsns := [2]string{dsn, dsnWith(t, dsn, "default_query_exec_mode", "cache_describe")} // the second as behind a pool by transaction
	startServer := func(i int) { servers[i] = startShared(t, dsns[i], fmt.Sprint("central-", i+1), serverAt[i]) }
	startSidecar := func(i int) {
		sidecars[i] = launch(t, data[i], at[i], "sidecar", "--name", fmt.Sprintf("pod-%d", i+1), "--upstream", "http://"+serverAt[i%2])
	}
	for i := range servers {
		serverAt[i] = freePort(t)
		startServer(i)
	}
	for i := range sidecars {
		data[i], at[i] = t.TempDir(), freePort(t)
		startSidecar(i)
	}
	oracles := make([]*oracle, pairs)
	for i := range oracles {
		oracles[i] = startOracle(t, adminKey)
		oracles[i].loadBoth(sidecars[2*i], sidecars[2*i+1], 4, 1000)
	}
	const ofServer, killDatabase, stopDatabase = 0, 2, 3 // behind these the sidecars
	for round := range rounds(t, 8, 0.1) {
		pauseFor(time.Duration(100+rand.IntN(400)) * time.Millisecond)
		who := rand.IntN(4 + len(sidecars))
		if round < 6 {
			who = []int{4, ofServer, killDatabase, 5, ofServer + 1, stopDatabase}[round] // each at least once
		}
		switch who {
		case ofServer, ofServer + 1:
			servers[who].kill()
			startServer(who)
		case killDatabase:
			db.Kill(t)
			pauseFor(time.Duration(rand.IntN(400)) * time.Millisecond)
			db.Restart(t)
		case stopDatabase:
			db.Stop(t)
			pauseFor(time.Duration(rand.IntN(400)) * time.Millisecond)
			db.Restart(t)
		default:
			sidecars[who-4].kill()
			startSidecar(who - 4)
		}
	}
	for _, o := range oracles {
		o.halt()
	}
	for _, s := range sidecars {
		reached(t, 5*time.Minute, func() bool { return s.waiting() == 0 }, "a spool does not empty") // the long form leaves much
		if status := s.spoolStatus(); status["gaps"] != 0.0 || status["dead"] != 0.0 || status["held"] != 0.0 {
			t.Errorf("the spool says %v", status)
		}
	}
	for _, o := range oracles {
		for _, s := range servers { // either tells the same
			if a := o.wantAll(s); a.Acked < 20 || a.Scored < 40 {
				t.Errorf("only %d writes and %d scores were acked; the test shows nothing", a.Acked, a.Scored)
			}
		}
	}
	// The oracle sees what is not there: half of the records are taken out behind the servers' back. So does the check.
	conn := connect(t, dsn)
	check := func() (string, int) {
		out, errs, code := runCommand(t, nil, "archive", "check", "--archive", dsn)
		return out + errs, code
	}
	if said, code := check(); code != 1 || !strings.Contains(said, "stop them first") {
		t.Errorf("a check of a database that servers use: %d %s", code, said)
	}
	for _, n := range append(servers[:], sidecars...) {
		n.stop()
	}
	if said, code := check(); code != 0 || !strings.Contains(said, "Sound") {
		t.Errorf("the check after all that: %d %s", code, said)
	}
	startServer(0)
	execute(t, conn, `DELETE FROM record_states WHERE get_byte(uuid_send(request_id), 15) % 2 = 0`)
	for _, o := range oracles {
		if a := o.verify(servers[0]); a.Lost == 0 || a.There+a.Lost != a.Acked {
			t.Errorf("half of the records were deleted, and the oracle says %+v", a)
		}
	}
	servers[0].stop()
	if said, code := check(); code != 1 || !strings.Contains(said, "damaged") {
		t.Errorf("half of the records were deleted, and the check says %d %s", code, said)
	}
}

// told is a reply that refuses for now, with a remedy.
func (r reply) told(remedy string) error {
	if r.Status != 503 || r.Header.Get("Retry-After") == "" || !strings.Contains(fmt.Sprint(r.JSON["message"]), remedy) {
		return fmt.Errorf("%d, Retry-After %q, %s; want 503 and a message with %q", r.Status, r.Header.Get("Retry-After"), r.Body, remedy)
	}
	return nil
}

// write sends a request of its own to a server.
func (n *node) write() reply {
	n.t.Helper()
	return n.call("POST", "/rest/track-request", chat(), "X-API-KEY", adminKey)
}

// probe is the status of a route of the operations listener.
func (n *node) probe(path string) int {
	n.t.Helper()
	res, err := http.Get("http://" + n.ops + path)
	if err != nil {
		n.t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

func TestADatabaseThatStopsIsWaitedForAndSaid(t *testing.T) {
	t.Parallel()
	db := postgrestest.Start(t, postgrestest.Options{})
	server := startShared(t, db.Database(t), "a", freePort(t))
	sidecar := startSidecar(t, t.TempDir(), server.addr)
	server.write()
	sidecar.eventually(func() bool { return server.probe("/readyz") == 200 }, func() string { return "it is not ready" })
	db.Stop(t)
	if err := server.write().told("The database"); err != nil {
		t.Errorf("a write while the database is stopped: %v", err)
	}
	server.eventually(func() bool { return server.probe("/readyz") == 503 }, func() string { return "it stays ready" })
	if status := server.probe("/livez"); status != 200 {
		t.Errorf("livez is %d", status)
	}
	if r := sidecar.write(); r.Status != 200 {
		t.Errorf("the sidecar answers %d %s", r.Status, r.Body)
	}
	if out, _, _ := runCommand(t, nil, "status", "--data", server.data); !strings.Contains(out, "does not answer") {
		t.Errorf("status says\n%s", out)
	}
	db.Restart(t)
	sidecar.emptied()
	server.eventually(func() bool { return server.probe("/readyz") == 200 }, func() string { return "it does not become ready again" })
	if r := server.write(); r.Status != 200 {
		t.Errorf("after the database came back: %d %s", r.Status, r.Body)
	}
}

func TestADatabaseWithoutConnectionsIsSaidAndUsedAgain(t *testing.T) {
	t.Parallel()
	db := postgrestest.Start(t, postgrestest.Options{Settings: []string{"max_connections=12", "superuser_reserved_connections=0"}})
	dsn := db.Database(t)
	server := startShared(t, dsn, "a", freePort(t))
	// Others take what is left, and those that the server has are ended.
	var others []*pgx.Conn
	for {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			break
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		others = append(others, conn)
	}
	take := func() bool { // a connection that the server has let go
		execute(t, others[0], `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'promptspool'`)
		for len(others) < 12 {
			conn, err := pgx.Connect(t.Context(), dsn)
			if err != nil {
				return false
			}
			t.Cleanup(func() { _ = conn.Close(context.Background()) })
			others = append(others, conn)
		}
		return true
	}
	server.eventually(take, func() string { return fmt.Sprintf("others have %d connections", len(others)) })
	if err := server.write().told("max_connections"); err != nil {
		t.Errorf("a write without a connection: %v", err)
	}
	for _, conn := range others {
		_ = conn.Close(context.Background())
	}
	if r := server.write(); r.Status != 200 {
		t.Errorf("after the others left: %d %s", r.Status, r.Body)
	}
}

func TestASlowDatabaseIsSaidAndUsedAgain(t *testing.T) {
	t.Parallel()
	dsn := postgrestest.DSN(t)
	server := startShared(t, dsnWith(t, dsn, "statement_timeout", "2s"), "a", freePort(t))
	server.write()
	conn := connect(t, dsn)
	execute(t, conn, `BEGIN; LOCK TABLE records IN ACCESS EXCLUSIVE MODE`)
	r := server.call("POST", "/api/public/v2/requests/search", "{}", "X-API-KEY", adminKey)
	if err := r.told("statement_timeout"); err != nil {
		t.Errorf("a search that waits for a lock: %v", err)
	}
	if err := server.write().told("statement_timeout"); err != nil {
		t.Errorf("a write that waits for a lock: %v", err)
	}
	execute(t, conn, `ROLLBACK`)
	if r := server.write(); r.Status != 200 {
		t.Errorf("after the lock was gone: %d %s", r.Status, r.Body)
	}
	if total := server.total(map[string]any{}); total != 2 {
		t.Errorf("%d records are there", total)
	}
}

// The database's tables lie on a disk of 48 MiB, which somebody else fills.
func TestADatabaseOnAFullDiskIsSaidAndUsedAgain(t *testing.T) {
	t.Parallel()
	db := postgrestest.Start(t, postgrestest.Options{})
	disk := smallDisk(t, db, 48)
	dsn := db.Database(t)
	admin := connect(t, db.DSN("postgres"))
	execute(t, admin, fmt.Sprintf(`CREATE TABLESPACE small LOCATION '%s'`, disk))
	execute(t, admin, fmt.Sprintf(`ALTER DATABASE %s SET TABLESPACE small`, strings.TrimPrefix(parsed(t, dsn).Path, "/")))
	server := startShared(t, dsn, "a", freePort(t))
	sidecar := startSidecar(t, t.TempDir(), server.addr)
	o := startOracle(t, adminKey)
	fill(t, filepath.Join(filepath.Dir(disk), "of others"))
	o.load(sidecar, 2, 20_000, 60)
	var r reply
	sidecar.eventually(func() bool { r = server.write(); return r.Status != 200 }, func() string { return "nothing is refused" })
	if err := r.told("disk is full"); err != nil {
		t.Errorf("a write while the disk is full: %v", err)
	}
	if r := server.call("POST", "/api/public/v2/requests/search", "{}", "X-API-KEY", adminKey); r.Status != 200 {
		t.Errorf("a search while the disk is full: %d %s", r.Status, r.Body)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(disk), "of others")); err != nil {
		t.Fatal(err)
	}
	sidecar.eventually(func() bool { return !o.count().Loading }, func() string { return "the load does not end" })
	o.halt()
	sidecar.emptied()
	o.wantAll(server)
}

// smallDisk is a folder for a tablespace, alone on a disk of so many MiB.
func smallDisk(t *testing.T, db *postgrestest.Server, mebibytes int) string {
	t.Helper()
	mount, err := os.MkdirTemp("/tmp", "psp-small-") // where another user than root can go
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(mount) })
	if err := unix.Mount("tmpfs", mount, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=755", mebibytes)); err != nil {
		t.Fatal("a small disk: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(mount, unix.MNT_DETACH) })
	info, err := os.Stat(db.Data())
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	folder := filepath.Join(mount, "tables")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(folder, int(owner.Uid), int(owner.Gid)); err != nil {
		t.Fatal(err)
	}
	return folder
}

// The database's machine is lost, and its standby takes over.
func TestAStandbyTakesOverWithoutALoss(t *testing.T) {
	t.Parallel()
	first := postgrestest.Start(t, postgrestest.Options{Fsync: true})
	second := first.Standby(t)
	dsn := first.DSN("postgres")
	hosts := parsed(t, dsn).Query().Get("host") + "," + parsed(t, second.DSN("postgres")).Query().Get("host")
	dsn = dsnWith(t, dsnWith(t, dsn, "host", hosts), "target_session_attrs", "read-write")
	server := startShared(t, dsn, "a", freePort(t))
	sidecar := startSidecar(t, t.TempDir(), server.addr)
	o := startOracle(t, adminKey)
	o.load(sidecar, 2, 1000, 0)
	sidecar.eventually(func() bool { return o.count().Acked > 50 && server.total(map[string]any{}) > 10 }, func() string { return fmt.Sprintf("%+v", o.count()) })
	first.Kill(t)
	before := o.count().Acked
	second.Promote(t)
	sidecar.eventually(func() bool { return o.count().Acked > before+50 }, func() string { return fmt.Sprintf("%+v", o.count()) })
	o.halt()
	sidecar.emptied()
	o.wantAll(server)
}

func parsed(t *testing.T, dsn string) *url.URL {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
