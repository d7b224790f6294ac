//go:build linux && soak

package durability

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/metrics/partstest"
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

	server := startShared(t, dsn, "a", harness.FreePort(t))

	sidecar := harness.StartSidecar(t, t.TempDir(), server.Addr)
	o := harness.StartOracle(t, harness.AdminKey)
	fill(t, filepath.Join(filepath.Dir(disk), "of others"))
	o.Load(sidecar, 2, 20_000, 60)

	var r harness.Reply
	isRefused := func() bool {
		r = writeOne(server)
		return r.Status != 200
	}
	sidecar.Eventually(isRefused, func() string { return "nothing is refused" })
	if err := refusal(r, "disk is full"); err != nil {
		t.Errorf("a write while the disk is full: %v", err)
	}
	if r := server.Call("POST", "/api/public/v2/requests/search", "{}", "X-API-KEY",
		harness.AdminKey); r.Status != 200 {
		t.Errorf("a search while the disk is full: %d %s", r.Status, r.Body)
	}

	if err := os.Remove(filepath.Join(filepath.Dir(disk), "of others")); err != nil {
		t.Fatal(err)
	}
	sidecar.Eventually(func() bool { return !o.Count().Loading }, func() string { return "the load does not end" })
	o.Halt()
	sidecar.Emptied()
	o.WantAll(server)
}

// smallDisk returns a folder for a tablespace, alone on a disk of some MiB.
func smallDisk(t *testing.T, db *postgrestest.Server, mebibytes int) string {
	t.Helper()
	partstest.Need(t, "root")
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
