//go:build linux && soak

package durability

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/spool/database/postgres/postgrestest"
)

// fleet is two servers of one database, each with a sidecar. Each server has an address and
// a folder that stay when it is replaced.
type fleet struct {
	*testing.T
	dsn      string
	at, data [2]string
	servers  [2]*harness.Node
	sidecars [2]*harness.Node
}

// begin starts a server of a build, and does not wait for it.
func (f *fleet) begin(i int, program string) *harness.Node {
	f.Helper()
	return harness.Begin(f, program, []string{"PROMPTSPOOL_ARCHIVE=" + f.dsn}, f.data[i], f.at[i],
		"server", "--name", fmt.Sprint("central-", i+1))
}

func (f *fleet) start(i int, program string) {
	f.Helper()
	f.servers[i] = f.begin(i, program)
	if !f.servers[i].Takes() {
		f.Fatalf("a server ended before it took calls:\n%s", f.servers[i].Logged())
	}
}

// says has the same command ask both servers, which must answer the same.
func (f *fleet) says(args ...string) string {
	f.Helper()
	var answers [2]string
	for i, server := range f.servers {
		answers[i], _ = harness.Run(f.T, 0, append(args, "--url", "http://"+server.Addr)...)
	}
	if answers[0] != answers[1] {
		f.Errorf("%s: the servers differ:\n%s\n%s", strings.Join(args, " "), answers[0], answers[1])
	}
	return answers[0]
}

// onTheseTables returns the binary of the last release, or that of this version if the release
// works on earlier tables.
func onTheseTables(t *testing.T) string {
	t.Helper()
	releases := harness.Releases(t)
	last := releases[len(releases)-1]
	if says, err := exec.Command(last.Program, "version").Output(); !strings.Contains(string(says), last.Version) {
		t.Fatalf("the last release is version %s (%v)", says, err)
	}
	if last.Version == firstTables {
		return harness.Program(t)
	}
	return last.Program
}

// Servers of the last release with the same tables are replaced one by one by those of this version,
// as the page PostgreSQL says, and one of them goes back. Sidecars write all the time, and the other
// server serves.
func TestServersOfTwoBuildsTakeTurnsOnOneDatabase(t *testing.T) {
	t.Parallel()
	last, now := onTheseTables(t), harness.Program(t)
	f := &fleet{T: t, dsn: postgrestest.DSN(t)}
	for i := range f.servers {
		f.at[i], f.data[i] = harness.FreePort(t), t.TempDir()
		f.start(i, last)
		f.sidecars[i] = harness.StartSidecar(t, t.TempDir(), f.at[i])
	}

	oracle := harness.StartOracle(t, harness.AdminKey)
	for round, replace := range []struct {
		server  int
		program string
	}{{0, now}, {1, now}, {0, last}} {
		other, sidecar := f.servers[1-replace.server], f.sidecars[1-replace.server]
		oracle.LoadBoth(sidecar, f.sidecars[replace.server], 2, 1000)
		f.servers[replace.server].Stop()
		before := other.Total(nil)
		other.Eventually(
			func() bool { return other.Total(nil) >= before+20 },
			func() string { return "a server takes no writes while the other is replaced" },
		)
		text := fmt.Sprintf("Hello {name}, from round %d", round)
		r := other.Call("POST", "/rest/prompt-templates", harness.Greeting(text), "X-API-KEY", harness.AdminKey)
		if r.Status != 201 {
			t.Fatalf("publishing while the other server is replaced: %d %s", r.Status, r.Body)
		}

		f.start(replace.server, replace.program)
		if shown := f.says("templates", "show", "team/greet"); !strings.Contains(shown, text) {
			t.Errorf("what one build publishes, the other does not serve at once: %s", shown)
		}
		oracle.Halt()
	}

	id := f.servers[1].Track("/rest/track-request", harness.AdminKey, harness.Chat())
	// Both first: each may have the newest score of a record.
	for _, s := range f.sidecars {
		s.Emptied()
	}
	for _, s := range f.servers {
		oracle.WantAll(s)
	}
	if found := f.says("requests", "search", "--tag", "weather", "-o", "json"); !strings.Contains(found, id) {
		t.Errorf("what one build was sent, the other does not find: %s", found)
	}
	f.says("requests", "stats", "-o", "json")
	f.says("requests", "get", id[:18]) // as a list shows it

	// Tables of a later version: a server does not start on them, and those that run only read.
	execute(t, postgrestest.Connect(t, f.dsn),
		`INSERT INTO promptspool_schema SELECT max(number) + 1, now() FROM promptspool_schema`)
	f.at[0], f.data[0] = harness.FreePort(t), t.TempDir()
	refused := f.begin(0, now)
	if refused.Takes() || !strings.Contains(refused.Logged(), "its tables are of a newer version of promptspool") {
		t.Errorf("a server on tables of another version:\n%s", refused.Logged())
	}
	for _, s := range f.servers {
		if r := writeOne(s); r.Status != 503 {
			t.Errorf("a write to a server that ran before the tables changed: %d %s", r.Status, r.Body)
		}
	}
	f.says("requests", "get", id[:18])
}
