// Package openapi describes the HTTP API: for programs as OpenAPI 3.1, for people as a
// page of the documentation.
//
// The description is generated from tables (*.yaml), which list the operations with examples, and
// from the types that cross the wire. The binary contains only the result (openapi.json and the pages
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

// Describe returns the description. It reads the comments on the types from their source,
// so it works only in this package's folder.
func Describe() (*Document, error) {
	s, err := newSchemas()
	if err != nil {
		return nil, err
	}

	d := load[Document]("document")
	d.Paths = make(map[string]map[string]*Operation)
	d.Components.Schemas = s.all
	d.Components.Responses = errorResponses(s)

	for _, part := range parts {
		d.Tags = append(d.Tags, part.tag)
		for _, o := range part.Operations {
			d.add(s, o)
		}
	}

	return &d, nil
}

// add adds an operation in its usual spelling. Older ones are served, and left out here:
// generators of clients make a function of every operation.
func (d *Document) add(s *schemas, o *operation) {
	method, path, _ := strings.Cut(o.Route, " ")
	if d.Paths[path] == nil {
		d.Paths[path] = make(map[string]*Operation)
	}

	d.Paths[path][strings.ToLower(method)] = &Operation{
		ID:          o.ID,
		Tags:        []string{o.part.Name},
		Summary:     o.Summary,
		Description: o.Detail,
		Scope:       o.scope().Names(),
		Security:    o.part.Security,
		Parameters:  o.parameters(s),
		Body:        o.requestBody(s),
		Responses:   o.responses(s),
	}
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
