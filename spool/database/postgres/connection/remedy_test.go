package connection

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"promptspool/api/wire"
)

// A database that is short of something is waited for, and the message names the remedy.
func TestADatabaseThatIsShortOfSomethingNamesItsRemedy(t *testing.T) {
	for code, remedy := range map[string]string{"53100": "disk is full", "53300": "max_connections"} {
		e := wire.AsError(Failure(t.Context(), &pgconn.PgError{Code: code}))
		if e.Code != wire.CodeUnavailable || e.RetryAfter <= 0 || !strings.Contains(e.Message, remedy) {
			t.Errorf("%s: %s, Retry-After %v, %q; want unavailable, and %q",
				code, e.Code, e.RetryAfter, e.Message, remedy)
		}
	}
}
