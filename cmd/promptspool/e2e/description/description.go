// Package description compares requests and answers with the description of the API.
package description

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"promptspool/api/dashboard/docs"
	"promptspool/api/openapitest"
	"promptspool/cmd/promptspool/e2e/openapi"
)

// Checker compares requests with a description. Answers must not have members that the
// description does not list. Safe for concurrent use.
type Checker struct {
	document any // as decoded by jsonschema.UnmarshalJSON
	routes   []documented

	mu       sync.Mutex
	compiler *jsonschema.Compiler          // under mu
	compiled map[string]*jsonschema.Schema // under mu; by JSON pointer
}

// resource is the name of the description within the compiler; nothing is loaded from
// there.
const resource = "https://promptspool/openapi.json"

// NewChecker returns a Checker for a description in JSON.
func NewChecker(description []byte) (*Checker, error) {
	c := &Checker{compiler: jsonschema.NewCompiler(), compiled: make(map[string]*jsonschema.Schema)}
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	c.compiler.AssertFormat()

	var err error
	c.document, err = jsonschema.UnmarshalJSON(bytes.NewReader(description))
	if err != nil {
		return nil, fmt.Errorf("the description: %w", err)
	}

	// Before the compiler has it: tests must notice members without a description.
	closeObjects(c.document)
	if err := c.compiler.AddResource(resource, c.document); err != nil {
		return nil, fmt.Errorf("the description: %w", err)
	}

	paths, _ := member(c.document, "paths").(map[string]any)
	for path, methods := range paths {
		for method := range methods.(map[string]any) {
			c.add(method, path, path)
		}
	}
	for older, usual := range openapi.OlderRoutes() {
		method, spelling, _ := strings.Cut(older, " ")
		_, path, _ := strings.Cut(usual, " ")
		c.add(strings.ToLower(method), spelling, path)
	}

	return c, nil
}

// documented is one operation of a document.
type documented struct {
	method         string
	prefix, suffix string // of the path, around its identifier
	exact          bool   // the path has no identifier
	place          string // a JSON pointer to the operation
}

// add adds a path, which the document describes under the same or another spelling.
func (c *Checker) add(method, path, described string) {
	prefix, rest, named := strings.Cut(path, "{")
	_, suffix, _ := strings.Cut(rest, "}")

	c.routes = append(c.routes, documented{
		method: strings.ToUpper(method),
		prefix: prefix,
		suffix: suffix,
		exact:  !named,
		place:  "/paths/" + escaped(described) + "/" + method,
	})
}

// closeObjects changes schemas so that objects have only the members that they list,
// unless they say otherwise.
func closeObjects(schema any) {
	switch v := schema.(type) {
	case map[string]any:
		if _, ok := v["properties"].(map[string]any); ok && v["additionalProperties"] == nil {
			v["additionalProperties"] = false
		}
		for _, inner := range v {
			closeObjects(inner)
		}
	case []any:
		for _, inner := range v {
			closeObjects(inner)
		}
	}
}

// escaped returns a member's name for a JSON pointer in a URL.
func escaped(name string) string {
	return url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
}

// member follows names through objects. It returns nil where one is missing.
func member(v any, names ...string) any {
	for _, name := range names {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	return v
}

// find returns the place of a request's operation: of those that match, the one with the longest
// fixed part. A name may have slashes, which older clients send as they are.
func (c *Checker) find(method, path string) (place string, ok bool) {
	// The server also accepts more slashes.
	path = "/" + strings.TrimLeft(path, "/")
	var best documented
	for _, r := range c.routes {
		matches := path == r.prefix && r.exact

		// The identifier has at least one character.
		if !r.exact && len(path) > len(r.prefix)+len(r.suffix) {
			matches = strings.HasPrefix(path, r.prefix) && strings.HasSuffix(path, r.suffix)
		}
		if !matches || r.method != method {
			continue
		}

		if !ok || r.exact || !best.exact && len(r.prefix+r.suffix) > len(best.prefix+best.suffix) {
			best, ok = r, true
		}
	}

	return best.place, ok
}

// undescribed are statuses of answers to requests that have no operation: with a wrong method or
// with headers that cannot be read.
var undescribed = []int{http.StatusMethodNotAllowed, http.StatusRequestHeaderFieldsTooLarge}

// Check reports how a call differs from the description. It says nothing of pages, which are not
// described.
func (c *Checker) Check(e openapitest.Exchange) error {
	if _, known := c.find(e.Method, e.Path); !known || slices.Contains(undescribed, e.Status) {
		return nil
	}

	err := c.CheckAnswer(e.Method, e.Path, e.Status, e.ContentType, e.Answer)
	if err == nil && e.Status < 300 {
		err = c.CheckRequest(e.Method, e.Path, e.Sent)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w\nsent: %.2000s\nanswer: %.2000s", e.Method, e.Path, err, e.Sent, e.Answer)
	}

	return nil
}

// Current returns a Checker for the description that the program serves.
func Current() (*Checker, error) { return NewChecker([]byte(docs.OpenAPI("test", ""))) }

// CheckFile reports how the calls in a file, which openapitest.Recorder wrote, differ from the
// description.
func CheckFile(path string) error {
	c, err := Current()
	if err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()

	var faults []error
	for calls := json.NewDecoder(file); ; {
		var e openapitest.Exchange
		err := calls.Decode(&e)
		if errors.Is(err, io.EOF) {
			return errors.Join(faults...)
		}
		if err != nil {
			return err
		}
		if err := c.Check(e); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", e.Test, err))
		}
	}
}

// CheckRequest reports how the body of a request that was accepted differs from the
// description.
func (c *Checker) CheckRequest(method, path string, body []byte) error {
	place, ok := c.find(method, path)
	content, _ := c.at(place + "/requestBody/content").(map[string]any)
	if !ok || content == nil || len(bytes.TrimSpace(body)) == 0 {
		return nil
	}

	// Only single objects are compared: lines of events are accepted or refused one by
	// one.
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil || content[openapi.MediaJSON] == nil || value == nil {
		return nil
	}

	// A few members may be null; everywhere else null counts as absent.
	schema := place + "/requestBody/content/" + escaped(openapi.MediaJSON) + "/schema"
	if c.validate(schema, value) == nil {
		return nil
	}
	return c.validate(schema, withoutNull(value))
}

// withoutNull removes members that are null.
func withoutNull(v any) any {
	object, _ := v.(map[string]any)
	for name, inner := range object {
		if withoutNull(inner) == nil {
			delete(object, name)
		}
	}

	return v
}

// CheckAnswer reports how an answer differs from the description.
func (c *Checker) CheckAnswer(method, path string, status int, contentType string, body []byte) error {
	place, ok := c.find(method, path)
	if ok {
		place += "/responses/" + strconv.Itoa(status)
	} else {
		place = "/components/responses/not_found" // paths without a description are answered like this
	}
	response := c.at(place)

	if ref, _ := member(response, "$ref").(string); ref != "" {
		place = strings.TrimPrefix(ref, "#")
		response = c.at(place)
	}
	if response == nil {
		return fmt.Errorf("the status %d is not described", status)
	}

	content, _ := member(response, "content").(map[string]any)
	kind, _, _ := mime.ParseMediaType(contentType)
	switch {
	case content == nil && len(body) == 0:
		return nil
	case kind == openapi.MediaOTLP: // not JSON, whatever it answers
		return nil
	case content[kind] == nil:
		return fmt.Errorf("the Content-Type %q is not described for %d", kind, status)
	case kind == openapi.MediaCSV:
		return nil
	}

	// One value, or one a line.
	schema := place + "/content/" + escaped(kind) + "/schema"
	for values := json.NewDecoder(bytes.NewReader(body)); ; {
		values.UseNumber()
		var value any
		err := values.Decode(&value)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the answer is not JSON: %w", err)
		}

		if err := c.validate(schema, value); err != nil {
			return err
		}
	}
}

// at returns what the document has at a JSON pointer that escaped wrote, or nil.
func (c *Checker) at(place string) any {
	v := c.document
	for _, name := range strings.Split(strings.TrimPrefix(place, "/"), "/") {
		unescaped, _ := url.PathUnescape(name)
		v = member(v, strings.NewReplacer("~1", "/", "~0", "~").Replace(unescaped))
	}
	return v
}

// validate compares a value with the schema at a JSON pointer.
func (c *Checker) validate(place string, value any) error {
	// A compiler is not safe for concurrent use, a schema is.
	c.mu.Lock()
	schema, ok := c.compiled[place]
	if !ok {
		var err error
		schema, err = c.compiler.Compile(resource + "#" + place)
		if err != nil {
			c.mu.Unlock()
			return fmt.Errorf("the description: %w", err)
		}
		c.compiled[place] = schema
	}
	c.mu.Unlock()

	return schema.Validate(value)
}
