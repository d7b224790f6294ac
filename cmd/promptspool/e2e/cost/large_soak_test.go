//go:build linux && soak

package cost

import (
	"slices"
	"testing"
)

// What a stream of nothing once did: 22 s of the processor, and others had to wait.
func TestAnotherAccountWritesBesideLargeShapes(t *testing.T) {
	t.Parallel()
	for _, s := range generatedShapes() {
		if !slices.Contains(foundShapes[:4], s.name) {
			continue
		}
		l := largeTrial(t, s, shapeLarge)
		if l.fault() != "" { // or the machine did something else
			t.Log(l)
			l = largeTrial(t, s, shapeLarge)
		}
		t.Log(l)
		if fault := l.fault(); fault != "" {
			t.Errorf("%s: %s", s.name, fault)
		}
	}
}
