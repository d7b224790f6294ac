//go:build !race

package registry

import (
	"fmt"
	"strings"
	"testing"
)

// A patch that appends so many elements that looking for the next one each time would
// take minutes: this test fails by never ending.
func TestAPatchTakesTimeInProportionToItsElements(t *testing.T) {
	const n = 200_000
	var b strings.Builder
	b.WriteString("{")
	for i := range n {
		fmt.Fprintf(&b, `"%d":1,`, n-1-i)
	}
	change := strings.TrimSuffix(b.String(), ",") + "}"

	elements, err := patchElements("messages", nil, []byte(change))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(elements), len("[1")*n+1; got != want {
		t.Errorf("the elements take %d bytes, not %d", got, want)
	}
}
