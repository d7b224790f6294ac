//go:build linux

package durability

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/spool/database/postgres/postgrestest"
	"promptspool/spool/database/transfer"
)

// What a server on Badger holds moves to a PostgreSQL, the copy killed in its middle, and
// back again.
func TestAnArchiveMovesToPostgreSQLAndBackThoughTheCopyIsKilled(t *testing.T) {
	t.Parallel()
	data, dsn := t.TempDir(), postgrestest.DSN(t)
	server := harness.StartServer(t, data, harness.FreePort(t))
	o := harness.StartOracle(t, harness.AdminKey)
	o.Loaded(server, 16, 500, 4*transfer.RecordsMax)
	copyArgs := func(from, to string) []string { return []string{"archive", "copy", "--from", from, "--to", to} }
	_, errs, code := harness.RunWith(t, nil, copyArgs("badger:"+data, dsn)...)
	if code != 1 || !strings.Contains(errs, "stop it first") {
		t.Errorf("a copy of a running server: %d %s", code, errs)
	}
	server.Stop()

	conn := postgrestest.Connect(t, dsn)
	cmd := exec.Command(harness.Program(t), copyArgs("badger:"+data, dsn)...)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=20")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	harness.Reached(t, 30*time.Second, func() bool {
		var there int
		return conn.QueryRow(t.Context(), `SELECT 1 FROM record_states LIMIT 1`).Scan(&there) == nil
	}, "nothing is copied")
	execute(t, conn, `BEGIN; LOCK TABLE record_states IN SHARE MODE`) // so that it cannot end before the kill
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	execute(t, conn, `ROLLBACK`)
	var there int

	err := conn.QueryRow(t.Context(), `SELECT count(*) FROM record_states`).Scan(&there)
	if err != nil || there == 0 || there >= o.Count().Acked {
		t.Fatalf("the kill was to come in the middle, and %d of %d are copied (%v)", there, o.Count().Acked, err)
	}
	refused := harness.Begin(t, harness.Program(t), []string{"PROMPTSPOOL_ARCHIVE=" + dsn}, t.TempDir(),
		harness.FreePort(t), "server")
	if refused.Takes() || !strings.Contains(refused.Logged(), "archive copy") {
		t.Errorf("a server starts on half a copy:\n%s", refused.Logged())
	}

	out, errs, code := harness.RunWith(t, nil, copyArgs("badger:"+data, dsn)...)
	if code != 0 || !strings.Contains(out, "proved the same") {
		t.Fatalf("resuming the copy: %d %s%s", code, out, errs)
	}
	shared := startShared(t, dsn, "shared", harness.FreePort(t))
	o.WantAll(shared)
	_, errs, code = harness.RunWith(t, nil, copyArgs(dsn, "badger:"+t.TempDir())...)
	if code != 1 || !strings.Contains(errs, "stop them first") {
		t.Errorf("a copy of a database with a server: %d %s", code, errs)
	}
	o.Loaded(shared, 4, 500, o.Count().Acked+50) // the server on the copy accepts writes
	shared.Stop()

	// Only Citus spreads, and there it is spread already.
	out, errs, code = harness.RunWith(t, nil, "archive", "spread", "--archive", dsn)
	said := "no Citus"
	if len(postgrestest.Workers(t, dsn)) > 0 {
		said = "0 tables now"
	}
	if !strings.Contains(out+errs, said) {
		t.Errorf("archive spread: %d %s%s", code, out, errs)
	}

	back := filepath.Join(t.TempDir(), "back")
	if out, errs, code := harness.RunWith(t, nil, copyArgs(dsn, "badger:"+back)...); code != 0 {
		t.Fatalf("the copy back: %d %s%s", code, out, errs)
	}
	if out, errs, code := harness.RunWith(t, nil, "archive", "check", "--data", back); code != 0 {
		t.Errorf("archive check of the copy: %d %s%s", code, out, errs)
	}
	o.WantAll(harness.StartServer(t, back, harness.FreePort(t)))
	_, errs, code = harness.RunWith(t, nil, copyArgs("badger:"+data, dsn)...)
	if code != 1 || !strings.Contains(errs, "not empty") {
		t.Errorf("a copy over another archive: %d %s", code, errs)
	}
}
