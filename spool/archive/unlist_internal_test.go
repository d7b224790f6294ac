package archive

import "testing"

// ListEnrichments makes records list so many enrichments until the test ends.
func ListEnrichments(t *testing.T, most int) {
	usual := enrichmentsMax
	enrichmentsMax = most
	t.Cleanup(func() { enrichmentsMax = usual })
}
