//go:build linux

package harness

import "testing"

func TestMain(m *testing.M) { Main(m.Run, nil) }
