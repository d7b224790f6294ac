//go:build linux

package clients

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/metrics/partstest"
	"promptspool/spool/database/postgres/postgrestest"
)

// TestNginxReadsThePages has nginx itself check the blocks for it, with a certificate of the test.
func TestNginxReadsThePages(t *testing.T) {
	t.Parallel()
	partstest.Need(t, "nginx")
	cert, key := harness.NewCertAuthority(t).Issue()
	for _, e := range harness.ExamplesIn(t, "nginx") {
		own := strings.NewReplacer("listen 443", "listen "+harness.FreePort(t),
			"/etc/nginx/example.com.crt", cert, "/etc/nginx/example.com.key", key)
		if said, err := nginxCheck(t, own.Replace(e.Code)); err != nil {
			t.Errorf("%v: %s", err, said)
		}
		misspelt := strings.Replace(own.Replace(e.Code), "listen", "lisen", 1)
		if _, err := nginxCheck(t, misspelt); err == nil {
			t.Error("nginx accepts a misspelt setting")
		}
	}
}

func nginxCheck(t *testing.T, server string) (said string, err error) {
	t.Helper()
	dir := t.TempDir()
	config := harness.NginxConfig(t, dir, server)
	out, err := exec.CommandContext(t.Context(), "nginx", "-t", "-p", dir, "-c", config).CombinedOutput()

	return string(out), err
}

// TestPostgreSQLReadsThePages runs the SQL that is marked so, and has the rest parsed: what it
// names is not in a database of the tests.
func TestPostgreSQLReadsThePages(t *testing.T) {
	t.Parallel()
	partstest.Need(t, "postgres")
	const syntaxError = "42601"
	var conn *pgx.Conn
	for _, e := range harness.ExamplesIn(t, "sql") {
		if conn == nil { // a server of its own: a block may make a role
			own := postgrestest.Start(t, postgrestest.Options{})
			conn = postgrestest.Connect(t, own.DSN("postgres"))
		}
		for statement := range strings.SplitSeq(strings.TrimSpace(e.Code), ";\n") {
			_, err := conn.Exec(t.Context(), statement, pgx.QueryExecModeSimpleProtocol)
			fault := new(pgconn.PgError)
			isShown := e.Mark == "shown" && errors.As(err, &fault) && fault.Code != syntaxError
			if err != nil && !isShown {
				t.Errorf("%s: %v", statement, err)
			}
		}
	}
}
