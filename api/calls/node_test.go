package calls

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestAnIndexFindsWhatALookUpFinds(t *testing.T) {
	var many strings.Builder
	for i := range membersMax + 1 {
		fmt.Fprintf(&many, `"m%d":%d,`, i, i)
	}

	for _, object := range []string{
		`{}`,
		`{ }`,
		`{"a":1,"b":"two"}`,
		`{ "a" : [1, {"a": 2}] , "b" : {"a":null} }`,
		`{"a":null,"a":1,"b":null}`, // the first one counts, as everywhere
		`{"a":1,"a":null}`,
		`{"\u0061":"escaped","b\n":3}`,
		`{"b":{"a":{"a":"deep"}},"":""}`,
		`{` + many.String() + `"a":1}`,
		`[{"a":1}]`,
		`"a"`,
		`null`,
		``,
	} {
		plain := nodeOf(json.RawMessage(object))
		indexed := plain.indexed()
		for _, path := range [][]string{{}, {"a"}, {"b"}, {"b\n"}, {""}, {"m0"}, {"m48"}, {"b", "a"}, {"b", "a", "a"}} {
			got, want := indexed.at(path...), plain.at(path...)
			if string(got.raw) != string(want.raw) || got.exists() != want.exists() {
				t.Errorf("%s at %q: %s with an index, %s without", object, path, got.raw, want.raw)
			}
		}
	}
}
