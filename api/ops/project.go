package ops

import (
	"encoding/json"
	"regexp"
)

// accountMember is the name or the id of a project in JSON. Inside a text the quotes would be
// escaped, so it finds nothing there; nor has a name or an id a quote.
var accountMember = regexp.MustCompile(`"account(_id)?":("[^"]*")`)

// InProject returns v as JSON in which a project has its name of before, too: "account".
func InProject(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // these types marshal without errors
	}
	return accountMember.ReplaceAll(text, []byte(`"project$1":$2,$0`))
}
