//go:build linux

package durability

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/spool/database/postgres/postgrestest"
)

// writeOne sends a request to a server.
func writeOne(n *harness.Node) harness.Reply {
	n.T.Helper()
	return n.Call("POST", "/rest/track-request", harness.Chat(), "X-API-KEY", harness.AdminKey)
}

// status returns the status of a route of the operations listener.
func status(n *harness.Node, path string) int {
	n.T.Helper()
	res, err := http.Get("http://" + n.Ops + path)
	if err != nil {
		n.T.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// A database crashes while it is written, and starts again.
func TestADatabaseThatCrashesIsWaitedForAndSaid(t *testing.T) {
	t.Parallel()
	db := postgrestest.Start(t, postgrestest.Options{Fsync: true})
	server := startShared(t, db.Database(t), "a", harness.FreePort(t))
	sidecar := harness.StartSidecar(t, t.TempDir(), server.Addr)
	o := harness.StartOracle(t, harness.AdminKey)
	o.Load(sidecar, 2, 1000, 0)
	isReady := func() bool { return status(server, "/readyz") == 200 }
	sidecar.Eventually(
		func() bool { return isReady() && server.Total(nil) > 10 },
		func() string { return fmt.Sprintf("the load does not proceed: %+v", o.Count()) },
	)

	db.Kill(t)
	before := o.Count().Acked
	server.Eventually(
		func() bool { return status(server, "/readyz") == 503 },
		func() string { return "the server stays ready" },
	)
	if status := status(server, "/livez"); status != 200 {
		t.Errorf("livez is %d", status)
	}
	if out, _, _ := harness.RunWith(t, nil, "status", "--data", server.Data); !strings.Contains(out,
		"does not answer") {
		t.Errorf("status says\n%s", out)
	}
	sidecar.Eventually(
		func() bool { return o.Count().Acked > before },
		func() string { return "the sidecar takes nothing while the database is away" },
	)
	o.Halt()

	db.Restart(t)
	server.Eventually(isReady, func() string { return "the server does not become ready again" })
	if r := writeOne(server); r.Status != 200 {
		t.Errorf("after the database came back: %d %s", r.Status, r.Body)
	}
	// A sidecar that starts does not know how long it was told to wait.
	sidecar.Kill()
	sidecar = harness.StartSidecar(t, sidecar.Data, server.Addr)
	sidecar.Emptied()
	o.WantAll(server)
}

// The database's machine is lost, and its standby takes over.
func TestAStandbyTakesOverWithoutALoss(t *testing.T) {
	t.Parallel()
	first := postgrestest.Start(t, postgrestest.Options{Fsync: true})
	second := first.Standby(t)
	dsn := first.DSN("postgres")
	hosts := parsed(t, dsn).Query().Get("host") + "," + parsed(t, second.DSN("postgres")).Query().Get("host")
	dsn = dsnWith(t, dsnWith(t, dsn, "host", hosts), "target_session_attrs", "read-write")
	server := startShared(t, dsn, "a", harness.FreePort(t))
	sidecar := harness.StartSidecar(t, t.TempDir(), server.Addr)
	o := harness.StartOracle(t, harness.AdminKey)
	o.Load(sidecar, 2, 1000, 0)
	sidecar.Eventually(
		func() bool { return o.Count().Acked > 50 && server.Total(map[string]any{}) > 10 },
		func() string { return fmt.Sprintf("the load does not proceed: %+v", o.Count()) },
	)

	first.Kill(t)
	before := o.Count().Acked
	second.Promote(t)

	sidecar.Eventually(
		func() bool { return o.Count().Acked > before+50 },
		func() string { return fmt.Sprintf("after the takeover the load does not proceed: %+v", o.Count()) },
	)
	o.Halt()
	sidecar.Emptied()
	o.WantAll(server)
}
