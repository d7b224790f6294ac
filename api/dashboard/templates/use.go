package templates

import (
	_ "embed"
	"net/url"
	"strings"

	"promptspool/api/dashboard/markup"
)

// way is a way to fetch a template, to be pasted into an app.
type way struct{ ID, Name, Text string }

// useText has the texts of all ways, in the order of their names.
//
//go:embed use.txt
var useText string

// Uses returns ways to fetch the template from the server at an address: by the label prod, by another
// one, or the latest version.
func (v templateView) Uses(base string) (ways []way) {
	variables, body := map[string]string{}, map[string]any{}
	for _, name := range v.Variables {
		variables[name] = "..."
	}
	body["input_variables"] = variables
	for _, l := range v.Labels {
		if body["label"] == nil || l.Name == "prod" {
			body["label"] = l.Name
		}
	}

	object := markup.Indent(string(encoded(body)))
	fill := strings.NewReplacer("{address}", base+"/prompt-templates/"+url.PathEscape(v.Name),
		"{body}", object, "{in shell}", strings.ReplaceAll(object, "'", `'\''`))
	texts := strings.Split(useText, "\n---\n")
	for i, name := range []string{"curl", "Python", "JavaScript"} {
		ways = append(ways, way{strings.ToLower(name), name, fill.Replace(texts[i])})
	}

	return ways
}
