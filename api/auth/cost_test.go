package auth

import (
	"strings"
	"testing"
)

// shippedCost is what a hash costs outside of tests.
var shippedCost = argonCost

// Under the race detector, a hash takes a quarter of a second. Tests make hundreds.
func init() {
	argonCost = cost{memoryKiB: 64, passes: 1}
	decoyHash = strings.Replace(decoyHash, "m=19456,t=2", "m=64,t=1", 1)
}

func TestAHashCostsWhatOWASPAsksFor(t *testing.T) {
	if want := (cost{memoryKiB: 19456, passes: 2}); shippedCost != want {
		t.Errorf("a hash costs %+v, not %+v", shippedCost, want)
	}
}
