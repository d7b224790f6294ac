package registrytest

import (
	"time"

	"promptspool/registry"
	"promptspool/spool/database/accounts"
	"promptspool/spool/database/keyed/keyedtest"
)

// NewMemory returns an empty store without a disk, for tests of what uses a store.
func NewMemory() registry.Store { return accounts.New(&keyedtest.Memory{}, time.Now) }
