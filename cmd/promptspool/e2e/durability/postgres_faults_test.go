//go:build linux

package durability

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/spool/database/postgres/postgrestest"
)

// refusal returns an error unless the reply refuses for now, with a remedy.
func refusal(r harness.Reply, remedy string) error {
	retryAfter := r.Header.Get("Retry-After")
	if r.Status != 503 || retryAfter == "" || !strings.Contains(fmt.Sprint(r.JSON["message"]), remedy) {
		return fmt.Errorf("%d, Retry-After %q, %s; want 503 and a message with %q",
			r.Status, retryAfter, r.Body, remedy)
	}
	return nil
}

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

func TestADatabaseThatStopsIsWaitedForAndSaid(t *testing.T) {
	t.Parallel()
	db := postgrestest.Start(t, postgrestest.Options{})
	server := startShared(t, db.Database(t), "a", harness.FreePort(t))
	sidecar := harness.StartSidecar(t, t.TempDir(), server.Addr)
	writeOne(server)
	isReady := func() bool { return status(server, "/readyz") == 200 }
	sidecar.Eventually(isReady, func() string { return "the server is not ready" })

	db.Stop(t)
	if err := refusal(writeOne(server), "The database"); err != nil {
		t.Errorf("a write while the database is stopped: %v", err)
	}
	server.Eventually(
		func() bool { return status(server, "/readyz") == 503 },
		func() string { return "the server stays ready" },
	)
	if status := status(server, "/livez"); status != 200 {
		t.Errorf("livez is %d", status)
	}

	if r := writeOne(sidecar); r.Status != 200 {
		t.Errorf("the sidecar answers %d %s", r.Status, r.Body)
	}
	if out, _, _ := harness.RunWith(t, nil, "status", "--data", server.Data); !strings.Contains(out,
		"does not answer") {
		t.Errorf("status says\n%s", out)
	}

	db.Restart(t)
	sidecar.Emptied()
	server.Eventually(isReady, func() string { return "the server does not become ready again" })
	if r := writeOne(server); r.Status != 200 {
		t.Errorf("after the database came back: %d %s", r.Status, r.Body)
	}
}

func TestADatabaseWithoutConnectionsIsSaidAndUsedAgain(t *testing.T) {
	t.Parallel()
	settings := []string{"max_connections=12", "superuser_reserved_connections=0"}
	db := postgrestest.Start(t, postgrestest.Options{Settings: settings})
	dsn := db.Database(t)
	server := startShared(t, dsn, "a", harness.FreePort(t))

	// Others take the remaining connections, and the server's are ended until others have
	// those as well.

	var others []*pgx.Conn
	for {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			break
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		others = append(others, conn)
	}
	const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'promptspool'`
	take := func() bool {
		execute(t, others[0], end)
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

	server.Eventually(take, func() string { return fmt.Sprintf("others have %d connections", len(others)) })
	if err := refusal(writeOne(server), "max_connections"); err != nil {
		t.Errorf("a write without a connection: %v", err)
	}

	for _, conn := range others {
		_ = conn.Close(context.Background())
	}
	if r := writeOne(server); r.Status != 200 {
		t.Errorf("after the others left: %d %s", r.Status, r.Body)
	}
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
