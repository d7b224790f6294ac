package keyedtest_test

import (
	"testing"

	"promptspool/spool/database/keyed"
	"promptspool/spool/database/keyed/keyedtest"
)

func TestMemory(t *testing.T) {
	keyedtest.Run(t, func(*testing.T) keyed.Store { return &keyedtest.Memory{} })
}
