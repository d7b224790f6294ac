package templates

import (
	"fmt"
	"net/url"
	"strings"

	"promptspool/api/dashboard/markup"
)

// way is a way to fetch a template, to be pasted into an app.
type way struct{ ID, Name, Text string }

// UsedBy returns the label that apps ask for: prod, or else the first; "" if there is none.
func (v templateView) UsedBy() string {
	switch {
	case v.labelled("prod") >= 0:
		return "prod"
	case len(v.Labels) > 0:
		return v.Labels[0].Name
	}

	return ""
}

// Uses returns ways to fetch the template from the server at an address.
func (v templateView) Uses(base string) []way {
	variables := map[string]any{}
	for _, name := range v.Variables {
		variables[name] = "..."
	}
	body := map[string]any{"input_variables": variables}
	if label := v.UsedBy(); label != "" {
		body["label"] = label
	}

	address := base + "/prompt-templates/" + url.PathEscape(v.Name)
	object := markup.Indent(string(encoded(body)))
	inShell := strings.NewReplacer(`'`, `'\''`)

	return []way{
		{"curl", "curl", fmt.Sprintf(curlUse, inShell.Replace(address), inShell.Replace(object))},
		{"python", "Python", fmt.Sprintf(pythonUse, object, encoded(address))},
		{"javascript", "JavaScript", fmt.Sprintf(javaScriptUse, encoded(address), object)},
	}
}

const curlUse = `curl '%s' \
  -H "X-API-KEY: $PROMPTSPOOL_KEY" -H 'Content-Type: application/json' \
  -d '%s'`

const pythonUse = `import json, os, urllib.request

body = %s
request = urllib.request.Request(%s, json.dumps(body).encode(),
    {"X-API-KEY": os.environ["PROMPTSPOOL_KEY"], "Content-Type": "application/json"})
template = json.load(urllib.request.urlopen(request))
print(template["llm_kwargs"])  # the arguments for the model's client`

const javaScriptUse = `const answer = await fetch(%s, {
  method: "POST",
  headers: { "X-API-KEY": process.env.PROMPTSPOOL_KEY, "Content-Type": "application/json" },
  body: JSON.stringify(%s),
});
const template = await answer.json();
console.log(template.llm_kwargs); // the arguments for the model's client`
