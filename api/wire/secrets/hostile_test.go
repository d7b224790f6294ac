package secrets

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"promptspool/api/wire"
)

// On these bodies, a parser that reads a byte more than a few times would take hours.
// This test fails by never ending.
func TestHostileBodiesTakeLinearTime(t *testing.T) {
	const size = 2 << 20

	likeNames := make([]string, wire.ObjectMembersMax)
	for i := range likeNames {
		likeNames[i] = fmt.Sprintf(`"%s%04d":1`, strings.Repeat("n", size/wire.ObjectMembersMax), i)
	}

	deep := strings.Repeat(`{"a":"`+strings.Repeat("x", wire.BodyBytesMax/500-100)+`","b":[`, 255) +
		"1" + strings.Repeat("]}", 255)

	for _, tt := range []struct{ what, kwargs string }{
		{"almost the largest and deepest allowed, with long strings", deep},
		{"long names that differ at the end", "{" + strings.Join(likeNames, ",") + "}"},
		{"escaped quotes", `{"a":` + text(`\"`, size/2) + "}"},
		{"backslashes", `{"a":` + text(`\\`, size/2) + "}"},
		{"blanks", `{"a"` + strings.Repeat(" ", size) + ":1}"},
		{"line breaks", `{"a":[` + strings.Repeat("\n", size) + "]}"},
		{"small strings", `{"a":[""` + strings.Repeat(`,""`, size/3) + "]}"},
		{"credentials within a credential", `{"api_key":[` + strings.Repeat(`{"api_key":1},`, size/14) + "1]}"},
		{"credentials", `{"a":[` + strings.Repeat(`{"api_key":1},`, size/14) + "1]}"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			body := []byte(`{"kwargs":` + tt.kwargs + "}")
			object := parse(t, string(body))
			if stripped := Strip(body, object); !json.Valid(stripped) {
				t.Error("the stripped body is not valid JSON")
			}
		})
	}

	t.Run("long names at the top", func(t *testing.T) {
		parse(t, "{"+strings.Join(likeNames, ",")+"}")
	})
}

// A list of all secrets would take many times the bytes of such a body.
func TestAMemberFullOfCredentialsIsMaskedAsAWhole(t *testing.T) {
	const count = 500_000
	body := []byte(`{"a":1,"kwargs":{"a":[` + strings.Repeat(`{"pwd":"x"},`, count) + `1]},"b":"` +
		strings.Repeat(`x`, 10) + `"}`)
	object := parse(t, string(body))

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	stripped := Strip(body, object)
	runtime.ReadMemStats(&after)
	if want := `{"a":1,"kwargs":"[masked]","b":"xxxxxxxxxx"}`; string(stripped) != want {
		t.Errorf("%d bytes: %.100s, want %s", len(stripped), stripped, want)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 32<<20 {
		t.Errorf("%d MiB are allocated for %d credentials of 12 bytes", took>>20, count)
	}
}

// text returns a JSON string that repeats s n times.
func text(s string, n int) string { return `"` + strings.Repeat(s, n) + `"` }
