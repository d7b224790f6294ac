//go:build linux && soak

package durability

import (
	"fmt"
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/spool/database/postgres/connection"
	"promptspool/spool/database/postgres/postgrestest"
)

// firstTables is the release whose tables are those before the first step.
const firstTables = "0.1.0"

// programOf returns the binary of a release.
func programOf(t *testing.T, version string) string {
	t.Helper()
	for _, r := range harness.Releases(t) {
		if r.Version == version {
			return r.Program
		}
	}
	t.Fatalf("there is no release %s", version)
	return ""
}

// onFirstTables returns two places for servers, on a database that the first of them has made with
// the tables of firstTables. They are never on a Citus, which would have them made by this version.
func onFirstTables(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{T: t, dsn: postgrestest.Plain(t)}
	for i := range f.servers {
		f.at[i], f.data[i] = harness.FreePort(t), t.TempDir()
	}
	f.start(0, programOf(t, firstTables))
	return f
}

// A server of this version changes the tables beside one of 0.1.0, which then writes no more: its
// sidecar keeps what comes until the server is replaced.
func TestServersOfTwoBuildsLoseNothingWhenTheNewerChangesTheTables(t *testing.T) {
	t.Parallel()
	f := onFirstTables(t)
	older := f.servers[0]
	for i := range f.sidecars {
		f.sidecars[i] = harness.StartSidecar(t, t.TempDir(), f.at[i])
	}
	weather := older.Track("/rest/track-request", harness.AdminKey, harness.Chat())
	oracle := harness.StartOracle(t, harness.AdminKey)
	oracle.LoadBoth(f.sidecars[0], f.sidecars[1], 2, 1000)
	older.Eventually(
		func() bool { return older.Total(nil) >= 20 },
		func() string { return fmt.Sprintf("the load does not proceed: %+v", oracle.Count()) },
	)

	f.start(1, harness.Program(t))
	if r := writeOne(older); r.Status != 503 || r.Header.Get("Retry-After") == "" {
		t.Errorf("a write to the older server: %d %s", r.Status, r.Body)
	}
	f.sidecars[0].Eventually(
		func() bool { return f.sidecars[0].SpoolStatus()["events"].(float64) >= 100 },
		func() string { return fmt.Sprint("the sidecar holds nothing: ", f.sidecars[0].SpoolStatus()) },
	)
	if r := writeOne(f.servers[1]); r.Status != 200 {
		t.Errorf("a write to the newer server: %d %s", r.Status, r.Body)
	}
	for _, server := range f.servers {
		if total := server.Total(map[string]any{"q": "boston"}); total != 2 {
			t.Errorf("a server finds %d of two requests by a word", total)
		}
		if r := server.Get("/api/public/v2/requests/" + weather); r.Status != 200 {
			t.Errorf("a request of before: %d %s", r.Status, r.Body)
		}
		r := server.Call("POST", "/api/public/v2/requests/analytics", "{}", "X-API-KEY", harness.AdminKey)
		if total := fmt.Sprint(r.JSON["totalRequests"]); total != fmt.Sprint(server.Total(nil)) {
			t.Errorf("statistics count %s requests: %d %s", total, r.Status, r.Body)
		}
	}

	older.Stop()
	refused := f.begin(0, older.Cmd.Path)
	if refused.Takes() || !strings.Contains(refused.Logged(), "its tables are of a newer version of promptspool") {
		t.Errorf("the older server, started again:\n%s", refused.Logged())
	}
	f.start(0, harness.Program(t))
	oracle.Halt()
	for _, s := range f.sidecars {
		s.Emptied()
	}
	for _, s := range f.servers {
		oracle.WantAll(s)
	}
	f.says("requests", "stats", "-o", "json")
	f.says("requests", "get", weather)

	for _, s := range f.servers {
		s.Stop()
	}
	harness.Run(t, 0, "archive", "check", "--archive", f.dsn)
}

// Two servers of this version start at the same moment on tables of 0.1.0.
func TestTwoServersThatStartTogetherChangeTheTablesOnce(t *testing.T) {
	t.Parallel()
	f := onFirstTables(t)
	weather := f.servers[0].Track("/rest/track-request", harness.AdminKey, harness.Chat())
	f.servers[0].Stop()

	// Both have seen the tables of before, and wait for each other.
	conn := postgrestest.Connect(t, f.dsn)
	execute(t, conn, fmt.Sprintf(`SELECT pg_advisory_lock(%d)`, connection.TablesLock))
	for i := range f.servers {
		f.servers[i] = f.begin(i, harness.Program(t))
	}
	f.servers[0].Eventually(func() bool {
		waiting := 0
		err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&waiting)
		return err == nil && waiting == len(f.servers)
	}, func() string { return "the servers do not wait for the lock of the tables" })
	execute(t, conn, fmt.Sprintf(`SELECT pg_advisory_unlock(%d)`, connection.TablesLock))

	changed := 0
	for _, server := range f.servers {
		if !server.Takes() {
			t.Fatalf("a server ended before it took calls:\n%s", server.Logged())
		}
		changed += strings.Count(server.Logged(), "Bringing the database's tables")
	}
	if changed != 1 {
		t.Errorf("the tables were changed %d times", changed)
	}
	f.says("requests", "get", weather)
	for _, server := range f.servers {
		if r := writeOne(server); r.Status != 200 {
			t.Errorf("a write: %d %s", r.Status, r.Body)
		}
	}
}
