//go:build linux

package durability

import (
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/spool/database/postgres/postgrestest"
)

func TestMain(m *testing.M) {
	harness.Main(func() int { return postgrestest.Main(m) }, nil)
}
