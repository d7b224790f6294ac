//go:build linux && soak

package durability

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/spool/database/postgres/postgrestest"
)

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
// random. Each server has two sidecars.
func TestKillingServersSidecarsAndTheirDatabaseLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	harness.WatchForRaces(t)
	db := startFailing(t)
	dsn := db.dsn
	const pairs = 2

	var servers [2]*harness.Node
	var serverAt [2]string
	var sidecars [2 * pairs]*harness.Node
	var data, at [2 * pairs]string
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

	var oracles [pairs]*harness.Oracle
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

	for _, n := range append(servers[:], sidecars[:]...) {
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
