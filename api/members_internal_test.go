package api

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"promptspool/api/dashboard/docs"
)

// described is the part of the API's description that lists routes, and what calls may send.
type described struct {
	Paths map[string]map[string]struct {
		Parameters  []struct{ Name, In string }
		Scope       []string `json:"x-scope"`
		RequestBody struct {
			Required bool
			Content  map[string]struct {
				Schema struct {
					Ref string `json:"$ref"`
				}
			}
		}
	}
	Components struct {
		Schemas map[string]struct{ Properties map[string]any }
	}
}

func TestEveryQueryKnowsWhatIsDescribedOfIt(t *testing.T) {
	var all described
	if err := json.Unmarshal([]byte(docs.OpenAPI("test", "")), &all); err != nil {
		t.Fatal(err)
	}

	compared := map[string]bool{}
	for path, methods := range all.Paths {
		for method, operation := range methods {
			plain := strings.NewReplacer("{", "", "}", "").Replace(path)
			r, _, _, err := findRoute([]byte(strings.ToUpper(method)), []byte(plain))
			if err != nil || r.members == nil || r.members.other == keepOthers {
				continue
			}
			var want []string
			for _, p := range operation.Parameters {
				if p.In == "query" {
					want = append(want, p.Name)
				}
			}
			for _, media := range operation.RequestBody.Content {
				name := media.Schema.Ref[strings.LastIndex(media.Schema.Ref, "/")+1:]
				for member := range all.Components.Schemas[name].Properties {
					if member != "api_key" {
						want = append(want, member)
					}
				}
			}

			got := slices.Concat(r.members.read, r.members.ignored)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s %s knows\n%v, described are\n%v", method, path, got, want)
			}
			compared[r.name] = true
		}
	}

	for _, r := range routes {
		if r.members != nil && r.members.other != keepOthers && !compared[r.name] {
			t.Errorf("%s is not described", r.name)
		}
		// What asks for something, and tells by what it leaves out, must not leave out a slip.
		reads := r.needs == readRecords
		if reads && r.members == nil && !r.hasIdent() {
			t.Errorf("%s does not check its members", r.name)
		}
	}
}
