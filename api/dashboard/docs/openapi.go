package docs

import (
	"cmp"
	_ "embed" // for the description
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"promptspool/api/wire/packed"
)

// openAPIFile is openapi.json, which package openapi makes, in a tenth of its bytes; that package's tests
// keep both up to date.
//
//go:embed openapi.json.zst
var openAPIFile []byte

// openAPI is the description.
var openAPI = packed.Text(openAPIFile)

// OpenAPI is the description of the HTTP API as JSON, for a version of the program.
//
// server is the address at which the API is called; "" is where the description was read.
func OpenAPI(version, server string) string {
	own := strings.NewReplacer(
		`"version": "VERSION"`, `"version": `+strconv.Quote(version),
		`"url": "/"`, `"url": `+strconv.Quote(cmp.Or(server, "/")),
	)
	return own.Replace(openAPI())
}

// OpenAPIAsYAML is the same as YAML.
func OpenAPIAsYAML(version, server string) string {
	own := strings.NewReplacer(
		"version: VERSION", "version: "+strconv.Quote(version),
		"url: /\n", "url: "+strconv.Quote(cmp.Or(server, "/"))+"\n",
	)
	return own.Replace(asYAML())
}

// asYAML converts the description, once: it takes a while, and anybody may ask for it.
var asYAML = sync.OnceValue(func() string {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(openAPI()), &document); err != nil {
		panic("docs: " + err.Error()) // it is ours, and JSON is YAML
	}
	asBlocks(&document)

	text, err := yaml.Marshal(&document)
	if err != nil {
		panic("docs: " + err.Error())
	}
	return string(text)
})

// asBlocks takes away how JSON writes it: braces and quotes.
func asBlocks(n *yaml.Node) {
	n.Style = 0
	for _, inner := range n.Content {
		asBlocks(inner)
	}
}
