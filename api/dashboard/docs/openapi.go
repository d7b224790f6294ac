package docs

import (
	"cmp"
	_ "embed" // for the description
	"strconv"
	"strings"

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
