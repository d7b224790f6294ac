//go:build linux

package cost

import (
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

func TestMain(m *testing.M) {
	harness.Main(m.Run, map[string]func(){"quadratic": runQuadratic, "dear": runDear, "weak": runWeak})
}
