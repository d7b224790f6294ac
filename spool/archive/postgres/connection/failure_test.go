package connection

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"promptspool/api/wire"
)

// As a coordinator of Citus 13.2 reports it when a worker is killed.
func TestAWorkerThatIsLostIsADatabaseThatIsAway(t *testing.T) {
	for text, away := range map[string]bool{
		"server closed the connection unexpectedly\n\tThis probably means the server terminated abnormally": true,
		"SSL SYSCALL error: EOF detected\ninvalid socket":                                                   true,
		"could not commit transaction for shard 102058 on at least one active node":                         true,
		"cache lookup failed for relation 1":                                                                false,
	} {
		err := &pgconn.PgError{Code: "XX000", Message: text}
		if Away(err) != away || wire.IsCode(Failure(t.Context(), err), wire.CodeUnavailable) != away {
			t.Errorf("%q: away is %v", text, !away)
		}
	}
}
