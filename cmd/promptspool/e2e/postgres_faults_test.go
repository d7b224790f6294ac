//go:build linux

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"promptspool/metrics/parts"
	"promptspool/spool/database/postgres/postgrestest"
)

// refusal returns an error unless the reply refuses for now, with a remedy.
func (r reply) refusal(remedy string) error {
	retryAfter := r.Header.Get("Retry-After")
	if r.Status != 503 || retryAfter == "" || !strings.Contains(fmt.Sprint(r.JSON["message"]), remedy) {
		return fmt.Errorf("%d, Retry-After %q, %s; want 503 and a message with %q",
			r.Status, retryAfter, r.Body, remedy)
	}
	return nil
}

// write sends a request to a server.
func (n *node) write() reply {
	n.t.Helper()
	return n.call("POST", "/rest/track-request", chat(), "X-API-KEY", adminKey)
}

// probe returns the status of a route of the operations listener.
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
	isReady := func() bool { return server.probe("/readyz") == 200 }
	sidecar.eventually(isReady, func() string { return "the server is not ready" })

	db.Stop(t)
	if err := server.write().refusal("The database"); err != nil {
		t.Errorf("a write while the database is stopped: %v", err)
	}
	server.eventually(
		func() bool { return server.probe("/readyz") == 503 },
		func() string { return "the server stays ready" },
	)
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
	server.eventually(isReady, func() string { return "the server does not become ready again" })
	if r := server.write(); r.Status != 200 {
		t.Errorf("after the database came back: %d %s", r.Status, r.Body)
	}
}

func TestADatabaseWithoutConnectionsIsSaidAndUsedAgain(t *testing.T) {
	t.Parallel()
	settings := []string{"max_connections=12", "superuser_reserved_connections=0"}
	db := postgrestest.Start(t, postgrestest.Options{Settings: settings})
	dsn := db.Database(t)
	server := startShared(t, dsn, "a", freePort(t))

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

	server.eventually(take, func() string { return fmt.Sprintf("others have %d connections", len(others)) })
	if err := server.write().refusal("max_connections"); err != nil {
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

	conn := postgrestest.Connect(t, dsn)
	execute(t, conn, `BEGIN; LOCK TABLE records IN ACCESS EXCLUSIVE MODE`)
	r := server.call("POST", "/api/public/v2/requests/search", "{}", "X-API-KEY", adminKey)
	if err := r.refusal("statement_timeout"); err != nil {
		t.Errorf("a search that waits for a lock: %v", err)
	}
	if err := server.write().refusal("statement_timeout"); err != nil {
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

// The database's tables are on a disk of 48 MiB, which somebody else fills.
func TestADatabaseOnAFullDiskIsSaidAndUsedAgain(t *testing.T) {
	t.Parallel()
	db := postgrestest.Start(t, postgrestest.Options{})
	disk := smallDisk(t, db, 48)
	dsn := db.Database(t)
	admin := postgrestest.Connect(t, db.DSN("postgres"))
	execute(t, admin, fmt.Sprintf(`CREATE TABLESPACE small LOCATION '%s'`, disk))
	name := strings.TrimPrefix(parsed(t, dsn).Path, "/")
	execute(t, admin, fmt.Sprintf(`ALTER DATABASE %s SET TABLESPACE small`, name))

	server := startShared(t, dsn, "a", freePort(t))

	sidecar := startSidecar(t, t.TempDir(), server.addr)
	o := startOracle(t, adminKey)
	fill(t, filepath.Join(filepath.Dir(disk), "of others"))
	o.load(sidecar, 2, 20_000, 60)

	var r reply
	isRefused := func() bool {
		r = server.write()
		return r.Status != 200
	}
	sidecar.eventually(isRefused, func() string { return "nothing is refused" })
	if err := r.refusal("disk is full"); err != nil {
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

// smallDisk returns a folder for a tablespace, alone on a disk of some MiB.
func smallDisk(t *testing.T, db *postgrestest.Server, mebibytes int) string {
	t.Helper()
	parts.Need(t, "root")
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
	sidecar.eventually(
		func() bool { return o.count().Acked > 50 && server.total(map[string]any{}) > 10 },
		func() string { return fmt.Sprintf("the load does not proceed: %+v", o.count()) },
	)

	first.Kill(t)
	before := o.count().Acked
	second.Promote(t)

	sidecar.eventually(
		func() bool { return o.count().Acked > before+50 },
		func() string { return fmt.Sprintf("after the takeover the load does not proceed: %+v", o.count()) },
	)
	o.halt()
	sidecar.emptied()
	o.wantAll(server)
}
