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
		{"URLs within a URL", `{"a":` + text(`'h://a?key=`, size/11) + "}"},
		{"URLs that end in prose", `["h://a` + strings.Repeat(`'h://a`, size/6) + ` x"]`},
		{"a URL of parameters", `{"a":"h://a?` + strings.Repeat(`&key=`, size/5) + `"}`},
		{"a URL of escapes", `{"a":"h://a?key=` + strings.Repeat(`\/\u0026`, size/8) + `"}`},
		{"signatures", `{"a":[` + strings.Repeat(`{"signature":"Zq7xW3kT9mB4vR8nL2pD"},`, size/38) + "1]}"},
		{"signatures right in the arguments", `{"a":1` + strings.Repeat(`,"signature":"a"`, size/16) + "}"},
		{"headers within headers", strings.Repeat(`{"headers":`, 250) + text("x", size) + strings.Repeat("}", 250)},
		{"heads of web tokens", `{"a":` + text("eyJaaaaaaaaaaaaaaaaaaaa.a.", size/26) + "}"},
		{"heads and bodies of web tokens", `{"a":` + text("eyJaaaaaaaaaaaaaaaaaaaa.eyJa ", size/29) + "}"},
		{"prefixes with a dot", `{"a":` + text("SG.aaaaaaaaaaaaaaaaaaaaaaaaa.", size/29) + "}"},
		{"keys that go on in base64", `{"a":` + text("ABSKQmVkcm9ja0FQSUtleSZq7xW3kT9mB4vR8n+/=", size/41) + "}"},
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
