package registrytest_test

import (
	"testing"

	"promptspool/registry"
	"promptspool/registry/registrytest"
)

func TestMemory(t *testing.T) {
	registrytest.Run(t, func(*testing.T) registry.Store { return registrytest.NewMemory() })
}
