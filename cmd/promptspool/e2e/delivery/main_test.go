//go:build linux

package delivery

import (
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

func TestMain(m *testing.M) {
	harness.Main(m.Run, nil)
}
