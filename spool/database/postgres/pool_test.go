package postgres_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"promptspool/spool/database/postgres"
	"promptspool/spool/database/postgres/postgrestest"
)

// with adds parameters to a connection string.
func with(t testing.TB, dsn string, parameters ...string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	for i := 0; i < len(parameters); i += 2 {
		q.Set(parameters[i], parameters[i+1])
	}
	u.RawQuery = q.Encode()
	return u.String()
}

func TestAStandbyIsSearchedWhileItAnswers(t *testing.T) {
	first := postgrestest.Start(t, postgrestest.Options{Fsync: true})
	second := first.Standby(t)
	hosts := make([]string, 2)
	for i, server := range []*postgrestest.Server{first, second} {
		u, err := url.Parse(server.DSN("postgres"))
		if err != nil {
			t.Fatal(err)
		}
		hosts[i] = u.Query().Get("host")
	}
	dsn := with(t, first.DSN("postgres"),
		"host", strings.Join(hosts, ","),
		"target_session_attrs", "read-write",
		"search", "prefer-standby")

	// What this one writes has been applied at the standby too when the write returns.
	db := open(t, with(t, dsn, "synchronous_commit", "remote_apply"))
	begin := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	apply(t, db, requestAt(t, begin, 1))
	if n := total(t, db); n != 1 {
		t.Fatalf("%d records are found, want the one that the standby has too", n)
	}

	// The standby keeps what it receives, but does not show it.
	execute(t, second.DSN("postgres"), `SELECT pg_wal_replay_pause()`)
	state, standby := "", postgrestest.Connect(t, second.DSN("postgres"))
	for state != "paused" {
		if err := standby.QueryRow(t.Context(), `SELECT pg_get_wal_replay_pause_state()`).Scan(&state); err != nil {
			t.Fatal(err)
		}
	}

	db = open(t, dsn)
	late := requestAt(t, begin, 2)
	apply(t, db, late)
	if n := total(t, db); n != 1 {
		t.Errorf("%d records are found, want 1: the standby was not searched", n)
	}
	if _, _, err := db.Record(context.Background(), account, late.RequestID); err != nil {
		t.Errorf("a record must be read from where it was written: %v", err)
	}

	second.Kill(t)
	if n := total(t, db); n != 2 {
		t.Errorf("without a standby %d records are found, want 2", n)
	}
}

func TestWhatIsSearchedIsSpeltRight(t *testing.T) {
	dsn := with(t, postgrestest.DSN(t), "search", "standby")
	_, err := postgres.Open(context.Background(), postgres.Config{DSN: dsn, Logger: quiet})
	if err == nil || !strings.Contains(err.Error(), "prefer-standby") {
		t.Errorf("an unknown value of search: %v", err)
	}
}
