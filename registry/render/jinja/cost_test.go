package jinja_test

import (
	"runtime"
	"strings"
	"testing"

	"promptspool/registry/render/jinja"
)

// The server parses a text for each fetch and each publish: what is joined piece by
// piece, and copied each time, would take quadratic time. The test measures memory, which
// is the same however busy the machine is.
func TestTextsCostInProportionToTheirLength(t *testing.T) {
	for name, render := range map[string]func(n int) error{
		"adjacent strings": func(n int) error {
			_, err := jinja.Parse("{{" + strings.Repeat(" 'abcdefgh'", n) + "}}")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			cost := func(n int) uint64 {
				before := allocated()
				if err := render(n); err != nil {
					t.Fatal(err)
				}
				return allocated() - before
			}

			if once, fourfold := cost(1000), cost(4000); fourfold > 8*once {
				t.Errorf("four times as much takes %d bytes, not about four times %d", fourfold, once)
			}
		})
	}
}

// allocated returns how many bytes this process has ever allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)

	return m.TotalAlloc
}
