package connection

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"promptspool/api/wire"
)

// As a coordinator of Citus 13.2 reports it when a worker is killed.
func TestAWorkerThatIsLostIsADatabaseThatIsAway(t *testing.T) {
	for text, away := range map[string]bool{
		"server closed the connection unexpectedly\n\tThis probably means the server terminated abnormally": true,
		"SSL SYSCALL error: EOF detected\ninvalid socket":                                                   true,
		"could not commit transaction for shard 102058 on at least one active node":                         true,
		"failure on connection marked as essential: db1:5432":                                               true,
		"terminating connection due to administrator command":                                               true,
		"postmaster was shut down, exiting":                                                                 true,
		"cache lookup failed for relation 1":                                                                false,
	} {
		err := &pgconn.PgError{Code: "XX000", Message: text}
		if Away(err) != away || wire.IsCode(Failure(t.Context(), err), wire.CodeUnavailable) != away {
			t.Errorf("%q: away is %v", text, !away)
		}
	}
}

// A coordinator that stops is everybody's trouble; a worker is that of its accounts.
func TestAFailureNamesTheAccountWhoseWorkerIsLost(t *testing.T) {
	const worker = "SQL statement \"SELECT 1\"\nwhile executing command on db1:5432"

	for _, tt := range []struct {
		code, text, where string
		affects           wire.Affected
	}{
		{"57P01", "terminating connection due to administrator command", "", ""},
		{"57P01", "terminating connection due to administrator command", worker, wire.AffectsAccount},
		{"57P02", "terminating connection because of crash of another server process", "", ""},
		{"57P03", "the database system is shutting down", "", ""},
		{"57P04", "terminating connection due to database removal", "", ""},
		{"57P05", "terminating connection due to idle-session timeout", "", ""},
		{"57000", "operator intervention", "", ""},
		{"XX000", "postmaster was shut down, exiting", "", ""},
		{"XX000", "postmaster was shut down, exiting", worker, wire.AffectsAccount},
		{"XX000", "server closed the connection unexpectedly", "", wire.AffectsAccount},
		{"08006", `connection to the remote node failed: FATAL:  role "promptspool" does not exist`, "",
			wire.AffectsAccount},
		{"08P01", "unsupported startup parameter", "", ""},
		{"25006", "cannot execute INSERT in a read-only transaction", "", ""},
		{"25006", "cannot execute INSERT in a read-only transaction", worker, wire.AffectsAccount},
		{"53100", "could not extend file", "", ""},
		{"53100", "could not extend file", worker, wire.AffectsAccount},
		{"40P01", "deadlock detected", worker, ""},
	} {
		err := Failure(t.Context(), &pgconn.PgError{Code: tt.code, Message: tt.text, Where: tt.where})
		if e := wire.AsError(err); e.Code != wire.CodeUnavailable || e.RetryAfter <= 0 || e.Affects != tt.affects {
			t.Errorf("%s %q at %q: %s, Retry-After %v, affects %q; want unavailable, and %q",
				tt.code, tt.text, tt.where, e.Code, e.RetryAfter, e.Affects, tt.affects)
		}
	}
}

// A worker that does not answer may take all the time that a group of writes has.
func TestAWorkerThatDoesNotAnswerIsItsAccountsTrouble(t *testing.T) {
	ended, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()

	for name, ctx := range map[string]context.Context{"the statement": t.Context(), "the group": ended} {
		err := Failure(ctx, asLate(Impatiently(ctx, time.Second), context.DeadlineExceeded))
		if e := wire.AsError(err); e.Affects != wire.AffectsAccount || e.RetryAfter <= 0 {
			t.Errorf("at the end of %s: %v, Retry-After %v, affects %q", name, err, e.RetryAfter, e.Affects)
		}
	}
}
