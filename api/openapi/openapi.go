// Package openapi describes the HTTP API: for programs as OpenAPI 3.1, for people as a
// page of the documentation.
//
// The description is generated from a table of operations and from the types that cross
// the wire. The binary contains only the result (openapi.json and the pages
// api-*.md in api/dashboard/docs), not this package. Tests compare both with this package, with the
// route table, and with the requests that the tests themselves make; see Checker.
package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/invopop/jsonschema"

	"promptspool/api/wire/jsonscan"
)

// Document is an OpenAPI description.
type Document struct {
	OpenAPI    string                           `json:"openapi"`
	Info       info                             `json:"info"`
	Servers    []server                         `json:"servers"`
	Docs       externalDocs                     `json:"externalDocs"`
	Security   []security                       `json:"security"`
	Tags       []tag                            `json:"tags"`
	Paths      map[string]map[string]*Operation `json:"paths"` // by path and method
	Components components                       `json:"components"`
}

type info struct {
	Title       string            `json:"title"`
	Version     string            `json:"version"`
	Summary     string            `json:"summary"`
	Description string            `json:"description"`
	License     map[string]string `json:"license"`
}

type externalDocs struct {
	URL         string `json:"url"`
	Description string `json:"description"`
}

// security names a way to show the key, as one of several.
type security map[string][]string

type server struct {
	URL         string `json:"url"`
	Description string `json:"description"`
}

type tag struct {
	Name        string `json:"name"`
	Description string `json:"description"`

	page string // of the reference for people
}

type components struct {
	SecuritySchemes map[string]map[string]string  `json:"securitySchemes"`
	Schemas         map[string]*jsonschema.Schema `json:"schemas"`
	Responses       map[string]*Response          `json:"responses"`
	Headers         map[string]*Header            `json:"headers"`
}

// Operation is one method of one path.
type Operation struct {
	ID          string               `json:"operationId"`
	Tags        []string             `json:"tags"`
	Summary     string               `json:"summary"`
	Description string               `json:"description,omitempty"`
	Scope       []string             `json:"x-scope"`            // rights; the key needs one of them
	Security    []security           `json:"security,omitempty"` // if it differs from the document's
	Parameters  []Parameter          `json:"parameters,omitempty"`
	Body        *Body                `json:"requestBody,omitempty"`
	Responses   map[string]*Response `json:"responses"` // by status
}

// Parameter is an identifier in the path, a field of the query, or a header.
type Parameter struct {
	Name        string             `json:"name"`
	In          string             `json:"in"`
	Description string             `json:"description,omitempty"`
	Required    bool               `json:"required,omitempty"`
	Schema      *jsonschema.Schema `json:"schema"`
	Example     any                `json:"example,omitempty"`
}

// Body is what a request sends.
type Body struct {
	Required bool             `json:"required"`
	Content  map[string]Media `json:"content"` // by media type
}

// Response is an answer, or a reference to one.
type Response struct {
	Ref         string             `json:"$ref,omitempty"`
	Description string             `json:"description,omitempty"`
	Headers     map[string]*Header `json:"headers,omitempty"`
	Content     map[string]Media   `json:"content,omitempty"`
}

// Header is a header of an answer, or a reference to one.
type Header struct {
	Ref         string             `json:"$ref,omitempty"`
	Description string             `json:"description,omitempty"`
	Schema      *jsonschema.Schema `json:"schema,omitempty"`
}

// Media is a body of one media type. For newline-delimited JSON it describes one line.
type Media struct {
	Schema  *jsonschema.Schema `json:"schema"`
	Example any                `json:"example,omitempty"`
}

// VersionMark stands for the program's version until the description is served.
const VersionMark = "VERSION"

const introduction = "The HTTP API of promptspool, the same for a server and a sidecar. " +
	"A sidecar answers writes and fetched templates by itself, and passes everything else on to its server." +
	"\n\n" +
	"The key goes into the header `X-API-KEY` or, in a body, into `api_key`; " +
	"without both, the credentials of `Authorization: Bearer` count, " +
	"and on the routes for OpenTelemetry the password of `Basic`, too. " +
	"A member of a body that is null counts as absent. " +
	"Unknown members of what is logged are kept and forwarded; those of a query are an error, which names the " +
	"closest known one. Members of a query that have no effect here are named in `warning`. " +
	"Bodies may be compressed with gzip, deflate or zstd. " +
	"Every answer has the header `Promptspool-Version`; answers may gain members."

// schemes are the ways to show a key.
var schemes = map[string]map[string]string{
	"key": {
		"type": "apiKey",
		"in":   "header",
		"name": "X-API-KEY",
		"description": "As `promptspool keys create` or the dashboard makes them. " +
			"A key has some of the rights log, score, fetch, read, publish and manage: " +
			"scope `app` is the first three, `full` is all. Each request names those of which it needs one.",
	},
	"bearer": {
		"type":        "http",
		"scheme":      "bearer",
		"description": "The same key. It counts only where neither the header nor the body has one.",
	},
	"basic": {
		"type":        "http",
		"scheme":      "basic",
		"description": "The same key as the password, with any user. Only for what exporters send.",
	},
}

var (
	allCalls  = []security{{"key": {}}, {"bearer": {}}}
	exporters = []security{{"key": {}}, {"bearer": {}}, {"basic": {}}}
)

// Describe returns the description. It reads the comments on the types from their source,
// so it works only in this package's folder.
func Describe() (*Document, error) {
	s, err := newSchemas()
	if err != nil {
		return nil, err
	}

	d := &Document{
		OpenAPI: "3.1.0",
		Info: info{
			Title:   "promptspool",
			Version: VersionMark,
			Summary: "A durable record of every call to a language model, and a registry of " +
				"prompt templates.",
			Description: introduction,
			License:     map[string]string{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		Servers:  []server{{"/", "where this description was read"}},
		Docs:     externalDocs{"/docs/api", "the same for people, with examples"},
		Security: allCalls,
		Tags:     tags,
		Paths:    make(map[string]map[string]*Operation),
		Components: components{
			SecuritySchemes: schemes,
			Schemas:         s.all,
			Responses:       errorResponses(s),
			Headers:         headers,
		},
	}

	for _, o := range operations() {
		d.add(s, o)
	}

	return d, nil
}

// add adds an operation in its usual spelling. Older ones are served, and left out here:
// generators of clients make a function of every operation.
func (d *Document) add(s *schemas, o operation) {
	method, path, _ := strings.Cut(o.route, " ")
	described := &Operation{
		ID:          o.id,
		Tags:        []string{o.tag},
		Summary:     o.summary,
		Description: o.detail,
		Scope:       o.scope().Names(),
		Parameters:  o.parameters(s),
		Body:        o.requestBody(s),
		Responses:   o.responses(s),
	}

	if o.tag == tagOTLP {
		described.Security = exporters
	}

	if d.Paths[path] == nil {
		d.Paths[path] = make(map[string]*Operation)
	}
	d.Paths[path][strings.ToLower(method)] = described
}

// JSON returns the description as it is served.
func (d *Document) JSON() ([]byte, error) {
	text, err := jsonscan.Marshal(d)
	if err != nil {
		return nil, err
	}

	// The reflector refers to definitions beside each schema; here all schemas share one
	// place.
	text = bytes.ReplaceAll(text, []byte(`"#/$defs/`), []byte(`"`+schemaPrefix))

	var indented bytes.Buffer
	if err := json.Indent(&indented, text, "", " "); err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}

	return append(indented.Bytes(), '\n'), nil
}
