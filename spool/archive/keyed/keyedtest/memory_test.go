package keyedtest_test

import (
	"testing"

	"promptspool/spool/archive/keyed"
	"promptspool/spool/archive/keyed/keyedtest"
)

func TestMemory(t *testing.T) {
	keyedtest.Run(t, func(*testing.T) keyed.Store { return &keyedtest.Memory{} })
}
