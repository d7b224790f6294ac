//go:build linux

package overload

import (
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

func TestMain(m *testing.M) {
	harness.Main(m.Run, map[string]func(){"glutton": runGlutton})
}
