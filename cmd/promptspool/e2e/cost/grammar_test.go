//go:build linux

package cost

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"promptspool/api/dashboard/docs"
)

// dialectsOf returns examples of what the providers' clients send, by their names: each has
// every member that is read of it. See testdata/dialects.
func dialectsOf(file string) map[string]any {
	text, err := os.ReadFile(filepath.Join("testdata/dialects", file+".json"))
	if err != nil {
		panic(err)
	}

	return parsedJSON(text).(map[string]any)
}

// dialectShapes are the shapes of model calls, as apps log them.
func dialectShapes() (all []*shape) {
	track := func(dialect, before, after string, example any) {
		for _, f := range fillings(example) {
			body := f.within(`{"request_id":"`+shapeID+`","tags":["`+shapeID+`"],"function_name":"a.b",`+
				`"request_start_time":1,"request_end_time":2,`+before, after+`}`)
			all = append(all, &shape{
				name:   dialect + f.String(),
				method: "POST",
				path:   "/track-request",
				body:   body.text,
				looks:  recordLooks,
			})
		}
	}

	for name, example := range inOrder(dialectsOf("requests")) {
		track("a call of "+name+", ", `"request_response":{},"kwargs":`, "", example)
	}
	for name, example := range inOrder(dialectsOf("responses")) {
		track("a response of "+name+", ", `"kwargs":{},"request_response":`, "", example)
	}
	track("arguments by position, ", `"kwargs":{},"request_response":{},"args":`, "",
		[]any{[]any{map[string]any{"role": "user", "content": "a"}, "a"}})

	for name, example := range inOrder(dialectsOf("logs")) {
		for _, f := range fillings(example) {
			for _, member := range []string{name, map[string]string{"input": "output"}[name]} {
				other := map[string]string{"input": "output", "output": "input"}[member]
				body := f.within(`{"request_id":"`+shapeID+`","tags":["`+shapeID+`"],"provider":"a","model":"m",`+
					`"request_start_time":1,"request_end_time":2,"`+other+`":{"type":"chat","messages":[]},`+
					`"`+member+`":`, `}`)
				all = append(all, &shape{
					name:   "a log's " + member + f.String(),
					method: "POST",
					path:   "/log-request",
					body:   body.text,
					looks:  recordLooks,
				})
			}
		}
	}

	return all
}

// inOrder yields the members of a map by their names.
func inOrder[V any](m map[string]V) func(func(string, V) bool) {
	return func(yield func(string, V) bool) {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if !yield(name, m[name]) {
				return
			}
		}
	}
}

// eventShapes are the shapes of what sidecars deliver.
func eventShapes() (all []*shape) {
	const head = `{"id":"%s","request_id":"` + shapeID + `","accepted_at":"2026-01-01T00:00:00Z",` +
		`"sidecar":"s","kind":"%s","body":`
	one := func(name string, f filling, looks func(string) []look) {
		all = append(all, &shape{
			name: name, method: "POST", path: "/sync/events", looks: looks,
			body: func(size int) string { return f.text(size) + "\n" },
		})
	}
	for kind, example := range inOrder(dialectsOf("events")) {
		looks := recordLooks
		if kind == "span" || kind == "log" {
			looks = nil // their ids are made of what they hold
		}
		for _, f := range fillings(example) {
			before := fmt.Sprintf(head, shapeID, kind)
			one("an event of "+kind+", "+f.String(), f.within(before, "}"), looks)
		}

		// Many events of one record, each with an id of its own.
		line := fmt.Sprintf(head, "01010101-0101-7101-8101-%012x", kind) + jsonOf(example) + "}"
		all = append(all, &shape{
			name: "events of " + kind, method: "POST", path: "/sync/events",
			records: func(body string) int { return strings.Count(body, "\n") },
			body: func(size int) string {
				var b strings.Builder
				for i := 0; b.Len() < size && i < 1000; i++ {
					fmt.Fprintf(&b, line+"\n", i)
				}
				return b.String()
			},
		})
	}
	for _, line := range []string{"", "{}", "[]", "0", `""`, "{", " "} {
		all = append(all, &shape{
			name: "lines of " + quoted(line), method: "POST", path: "/sync/events",
			body: func(size int) string { return strings.Repeat(line+"\n", size/(len(line)+1)) },
		})
	}

	return all
}

// places are what the identifiers in paths become: templates that the harness has made.
var places = map[string]string{
	"{template}": "shaped", "{request_id}": shapeID, "{trace_id}": attackedTrace, "{label_id}": "1",
}

// schemaShapes are the shapes of the API, by its description: those of all bodies, and of
// all queries.
func schemaShapes() (all []*shape) {
	document := parsedJSON([]byte(docs.OpenAPI("test", ""))).(map[string]any)
	s := schemaReader{document["components"].(map[string]any)["schemas"].(map[string]any)}
	for path, methods := range inOrder(document["paths"].(map[string]any)) {
		at := path
		for name, value := range places {
			at = strings.ReplaceAll(at, name, value)
		}
		for method, operation := range inOrder(methods.(map[string]any)) {
			o, method := operation.(map[string]any), strings.ToUpper(method)
			all = append(all, queryShapes(method, at, o["parameters"])...)

			body, _ := o["requestBody"].(map[string]any)
			content, _ := body["content"].(map[string]any)
			media, _ := content["application/json"].(map[string]any)
			if media == nil {
				continue
			}
			example := s.completed(media["example"], media["schema"], 0)
			if object, ok := example.(map[string]any); ok {
				delete(object, "api_key") // the header has it
				named(object)
			}
			shapes := bodyShapes(method, at, example)
			if o["deprecated"] == true {
				shapes = shapes[:1] // another spelling of a path
			}
			all = append(all, shapes...)
		}
	}

	return all
}

// named gives the names in a body to what a shape makes.
func named(object map[string]any) {
	for name, value := range object {
		inner, isObject := value.(map[string]any)
		switch {
		case name == "request_id" || name == "prompt_name":
			object[name] = shapeID
		case name == "release_labels":
			object[name] = []any{"prod"}
		case isObject:
			named(inner)
		}
	}
}

// bodyShapes returns the shapes of a body.
func bodyShapes(method, path string, example any) (all []*shape) {
	looks := func(string) []look { return nil }
	switch path {
	case "/track-request", "/rest/track-request", "/log-request":
		looks = recordLooks
		example.(map[string]any)["request_id"], example.(map[string]any)["tags"] = shapeID, []any{shapeID}
	case "/rest/prompt-templates", "/rest/publish-prompt-template", "/library-publish-prompt-template":
		looks = templateLooks
	}
	for _, f := range fillings(example) {
		all = append(all, &shape{
			name: method + " " + path + " " + f.String(), method: method, path: path, body: f.text, looks: looks,
			records: recordsOf(f.place, len(f.element)),
		})
	}

	return all
}

// queryShapes returns the shapes of a query.
func queryShapes(method, path string, parameters any) (all []*shape) {
	pairs := []string{"&", "a&", "=&", "%&"}
	list, _ := parameters.([]any)
	for _, p := range list {
		if p := p.(map[string]any); p["in"] == "query" {
			pairs = append(pairs, url.QueryEscape(p["name"].(string))+"=a&")
		}
	}
	for _, pair := range pairs {
		all = append(all, &shape{
			name: method + " " + path + "? of " + pair, method: method, path: path,
			query: func(size int) string { return strings.Repeat(pair, min(size, inHead)/len(pair)) },
		})
	}

	return all
}

// schemaReader makes examples of what a schema allows.
type schemaReader struct{ all map[string]any }

// completed returns an example with the lists and maps that its schema allows and it lacks.
func (s *schemaReader) completed(example, schema any, depth int) any {
	of, _ := schema.(map[string]any)
	if ref, ok := of["$ref"].(string); ok {
		of, _ = s.all[ref[strings.LastIndexByte(ref, '/')+1:]].(map[string]any)
		depth++
	}
	if isAnything(of) && example == nil {
		// Anything.
		return []any{map[string]any{"a": []any{}}}
	}

	switch properties, _ := of["properties"].(map[string]any); {
	case depth > 4: // it refers to itself
	case len(properties) > 0:
		object, _ := example.(map[string]any)
		object = maps.Clone(object)
		if object == nil {
			object = map[string]any{}
		}
		for name, p := range properties {
			if inner := s.completed(object[name], p, depth); inner != nil {
				object[name] = inner
			}
		}
		return object
	case of["items"] != nil:
		list, _ := example.([]any)
		if len(list) == 0 {
			list = []any{nil}
		}
		return []any{s.completed(list[0], of["items"], depth)}
	case of["type"] == "object" && example == nil:
		return map[string]any{"a": "a"}
	}

	return example
}

// isAnything reports whether a schema allows whatever there is.
func isAnything(schema map[string]any) bool {
	for _, keyword := range []string{"type", "properties", "items", "anyOf", "oneOf", "enum"} {
		if schema[keyword] != nil {
			return false
		}
	}

	return true
}

// Every name that is read of a call is in an example.
func TestTheDialectsHaveEveryNameThatIsRead(t *testing.T) {
	known := map[string]bool{}
	for _, file := range []string{"requests", "responses", "logs", "events"} {
		names(dialectsOf(file), known)
	}
	for name := range strings.FieldsSeq("tool_name image_data") {
		known[name] = true
	}

	methods := []string{"at", "first", "texts", "counts", "number", "member"}
	for name := range namesRead(t, "../../../../api/calls", methods...) {
		if !known[name] {
			t.Errorf("%q is read of calls, and no example in testdata/dialects has it", name)
		}
	}
}

// names adds the names of members in a value.
func names(v any, to map[string]bool) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			names(e, to)
		}
	case map[string]any:
		for name, inner := range v {
			to[name] = true
			names(inner, to)
		}
	}
}

// namesRead returns the texts that calls of these methods have as arguments in a folder's files.
func namesRead(t testing.TB, folder string, methods ...string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no files: %v", folder, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains(methods, f.Sel.Name) {
				for _, a := range call.Args {
					if l, ok := a.(*ast.BasicLit); ok && l.Kind == token.STRING {
						text, _ := strconv.Unquote(l.Value)
						found[text] = true
					}
				}
			}
			return true
		})
	}

	return found
}
