package openapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/invopop/jsonschema"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

const schemaPrefix = "#/components/schemas/"

// schemas makes the schemas of Go types and keeps those of named types.
type schemas struct {
	reflector *jsonschema.Reflector
	all       map[string]*jsonschema.Schema
	types     map[string]reflect.Type // by the same names
}

// newSchemas reads the comments of the types that cross the wire.
func newSchemas() (*schemas, error) {
	s := &schemas{all: make(map[string]*jsonschema.Schema), types: make(map[string]reflect.Type)}

	// The reflector takes the package of a comment from the path that it is given:
	// "../../../../api/wire" becomes promptspool/api/wire.
	comments := new(jsonschema.Reflector)
	for _, folder := range []string{".", "../../../../api/wire"} {
		if err := comments.AddGoComments("promptspool/cmd/promptspool/e2e/openapi", folder); err != nil {
			return nil, fmt.Errorf("openapi: %w", err)
		}
	}

	s.reflector = &jsonschema.Reflector{
		AllowAdditionalProperties: true,
		Anonymous:                 true,
		Namer:                     s.name,
		Mapper:                    specialSchema,
		LookupComment: func(t reflect.Type, field string) string {
			// A type's own comment is asked for with an empty field.
			place := strings.TrimSuffix(t.PkgPath()+"."+t.Name()+"."+field, ".")
			name := place[strings.LastIndexByte(place, '.')+1:]
			return sentence(name, comments.CommentMap[place])
		},
	}

	return s, nil
}

// open marks a type whose objects may have members that are not listed.
type open struct{}

// JSONSchemaExtend is called by the reflector.
func (open) JSONSchemaExtend(s *jsonschema.Schema) { s.AdditionalProperties = jsonschema.TrueSchema }

// name returns the name of a type's schema. It panics if two types would share one.
func (s *schemas) name(t reflect.Type) string {
	if t.PkgPath() == "" {
		return ""
	}

	name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
	if other := s.types[name]; other != nil && other != t {
		panic("openapi: two types are called " + name)
	}
	s.types[name] = t

	return name
}

// specialSchema returns the schema of a type whose JSON differs from what its Go type
// suggests, otherwise nil.
func specialSchema(t reflect.Type) *jsonschema.Schema {
	words := func(all ...any) *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Enum: all} }

	switch t {
	case reflect.TypeFor[map[string]any]():
		return anyObject()

	case reflect.TypeFor[wire.Pair]():
		name, number := &jsonschema.Schema{Type: "string"}, &jsonschema.Schema{Type: "number"}
		two := uint64(2)
		return &jsonschema.Schema{
			Type:        "array",
			Description: "A name and a number.",
			PrefixItems: []*jsonschema.Schema{name, number},
			MinItems:    &two,
			MaxItems:    &two,
		}

	case reflect.TypeFor[messageRole]():
		return words("system", "user", "assistant", "function", "tool", "developer", "placeholder")
	case reflect.TypeFor[wire.Kind]():
		return words(wire.KindRequest, wire.KindScore, wire.KindMetadata, wire.KindPrompt, wire.KindGroup,
			wire.KindSpan, wire.KindLog)
	case reflect.TypeFor[wire.Scope](), reflect.TypeFor[time.Duration]():
		return &jsonschema.Schema{Type: "string"}
	case reflect.TypeFor[wire.Affected]():
		return words(wire.AffectsAccount, wire.AffectsKey)
	case reflect.TypeFor[wire.ResultCode]():
		return words(wire.ResultInvalid, wire.ResultLater, wire.ResultForbidden)

	// CodeMethod is not among the errors: no operation answers with it.
	case reflect.TypeFor[wire.Code]():
		codes := make([]any, len(shared.Errors))
		for i, e := range shared.Errors {
			codes[i] = e.Code
		}
		return words(append(codes, wire.CodeMethod)...)
	}

	return nil
}

// anyObject returns the schema of an object with any members. It says so explicitly,
// because some generators take an object without listed members to be empty.
func anyObject() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", AdditionalProperties: jsonschema.TrueSchema}
}

// schemaOf returns the schema of a value's type: a reference if the type has a name.
func (s *schemas) schemaOf(v any) *jsonschema.Schema {
	schema := s.reflector.Reflect(v)
	for name, definition := range schema.Definitions {
		if s.all[name] == nil {
			// Before it is refined, which may come to a type that refers to this one.
			s.all[name] = definition
			if t := s.types[name]; t.Kind() == reflect.Struct {
				s.refine(definition, t)
			}
		}
	}

	// The document has one version, and all definitions in one place.
	schema.Version, schema.Definitions = "", nil

	return schema
}

// refine adds what reflection does not see: which members may be null, and what raw JSON
// contains.
func (s *schemas) refine(schema *jsonschema.Schema, t reflect.Type) {
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		p, ok := schema.Properties.Get(name)
		if !ok {
			continue
		}
		p.Description = cmp.Or(p.Description, shared.Properties[name])

		nullable := f.Type.Kind() == reflect.Pointer
		switch {
		case f.Tag.Get("read") == "blueprint":
			p = s.blueprint(p.Description)
		case f.Type == reflect.TypeFor[map[string]json.RawMessage](),
			strings.Contains(f.Tag.Get("jsonschema"), "type=object") && name != "prompt_template":
			p.AdditionalProperties = jsonschema.TrueSchema
		case f.Type == reflect.TypeFor[json.RawMessage]():
			p, nullable = s.rawMember(name, p)
		}
		// A time that may be a number, too, is of no format.
		if p.AnyOf != nil && p.Format != "" {
			p = &jsonschema.Schema{AnyOf: p.AnyOf, Description: p.Description}
		}

		// With omitempty the member is left out instead of being null.
		if nullable && options == "" {
			p = orNull(p)
		}
		schema.Properties.Set(name, p)
	}
}

// rawMember returns the schema of a member that is raw JSON, and whether it may be null.
func (s *schemas) rawMember(name string, p *jsonschema.Schema) (member *jsonschema.Schema, nullable bool) {
	object := anyObject()
	object.Description = p.Description

	switch name {
	case "prompt_template":
		return s.blueprint(p.Description), false
	case "body":
		return object, false
	case "request", "metadata", "llm_kwargs", "input_variables", "prompt_blueprint":
		return object, true
	default:
		return p, false
	}
}

// blueprint returns the schema of a member that is a blueprint.
func (s *schemas) blueprint(description string) *jsonschema.Schema {
	member := s.schemaOf(Blueprint{})
	member.Description = description
	return member
}

// orNull returns a schema that also allows null. It may change p.
func orNull(p *jsonschema.Schema) *jsonschema.Schema {
	switch {
	case p.AnyOf != nil:
		p.AnyOf = append(p.AnyOf, &jsonschema.Schema{Type: "null"})
		return p
	case p.Enum != nil:
		p.Enum = append(p.Enum, nil)
	}
	// A reference has no type to which null could be added.
	if p.Type == "" {
		return &jsonschema.Schema{
			OneOf:       []*jsonschema.Schema{{Ref: p.Ref}, {Type: "null"}},
			Description: p.Description,
		}
	}

	// The library's Type is one word only.
	p.Extras = map[string]any{"type": []string{p.Type, "null"}}
	p.Type = ""

	return p
}

// query returns the fields of a query as parameters.
func (s *schemas) query(of *value) (all []Parameter) {
	if of == nil {
		return nil
	}

	// Each field is its own parameter, so the struct itself needs no name.
	reflector := *s.reflector
	reflector.ExpandedStruct = true
	reflector.Namer = nil
	schema := reflector.ReflectFromType(types[of.Type])

	var values map[string]any
	if err := json.Unmarshal([]byte(cmp.Or(of.Example, "{}")), &values); err != nil {
		panic("openapi: " + err.Error())
	}

	for p := schema.Properties.Oldest(); p != nil; p = p.Next() {
		// A query has texts only: an object is JSON in one.
		if p.Value.Ref != "" {
			p.Value = &jsonschema.Schema{Type: "string", Description: p.Value.Description}
		}
		if p.Value.AnyOf != nil {
			p.Value.Type, p.Value.AnyOf = p.Value.AnyOf[0].Type, nil
		}

		all = append(all, Parameter{
			Name:        p.Key,
			In:          "query",
			Description: cmp.Or(p.Value.Description, shared.Properties[p.Key]),
			Required:    slices.Contains(schema.Required, p.Key),
			Schema:      p.Value,
			Example:     values[p.Key],
		})

		// The parameter has it.
		p.Value.Description = ""
	}

	return all
}

// media returns the schema and the example of what a body or an answer holds.
func (s *schemas) media(v *value) Media {
	if v.Media == MediaCSV { // which has no schema
		header := strings.Join(wire.CSVColumns, ",") + "\n"
		return Media{Schema: &jsonschema.Schema{Type: "string"}, Example: header}
	}

	example := v.parse()
	return Media{Schema: s.schemaOf(example), Example: s.example(example)}
}

// body returns the schema and the example of a body, which is sent as it is written. It may have more members
// than those of its type, the key among them if it is keyed.
func (s *schemas) body(v *value, keyed bool) Media {
	schema := s.schemaOf(reflect.Zero(types[v.Type]).Interface())
	definition := s.all[v.Type]
	if !v.Closed {
		definition.AdditionalProperties = jsonschema.TrueSchema
	}
	if !v.Closed && keyed {
		description := "The key, if it is not in the header."
		definition.Properties.Set("api_key", &jsonschema.Schema{Type: "string", Description: description})
		_ = definition.Properties.MoveToFront("api_key") // it is there
	}

	var example bytes.Buffer
	if err := json.Compact(&example, []byte(cmp.Or(v.Example, "{}"))); err != nil {
		panic("openapi: an example of " + v.Type + ": " + err.Error())
	}
	for m := range jsonscan.Members(example.Bytes()) {
		if _, ok := definition.Properties.Get(m.Name); !ok {
			panic("openapi: an example of " + v.Type + " has " + m.Name)
		}
	}

	return Media{Schema: schema, Example: json.RawMessage(example.Bytes())}
}

// example returns a value as JSON.
func (s *schemas) example(v any) json.RawMessage {
	text, err := jsonscan.Marshal(filled(reflect.ValueOf(v)).Interface())
	if err != nil {
		// Of a value in the table.
		panic("openapi: " + err.Error())
	}
	return text
}

// filled returns a copy of a value in which nil lists and maps are empty, as they are in
// answers.
func filled(v reflect.Value) reflect.Value {
	to := reflect.New(v.Type()).Elem()
	to.Set(v)

	switch {
	case v.Type() == reflect.TypeFor[json.RawMessage](): // a slice, but no list
	case v.Kind() == reflect.Struct && v.Type().PkgPath() != "time":
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				to.Field(i).Set(filled(v.Field(i)))
			}
		}
	case v.Kind() == reflect.Slice:
		to.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			to.Index(i).Set(filled(v.Index(i)))
		}
	case v.Kind() == reflect.Map && v.IsNil():
		to.Set(reflect.MakeMap(v.Type()))
	}

	return to
}

// sentence returns a Go comment on a name as a text for readers, who see the name beside
// it.
func sentence(name, comment string) string {
	text := strings.TrimSuffix(strings.Join(strings.Fields(comment), " "), ".")
	for _, verb := range []string{" is ", " are "} {
		text = strings.TrimPrefix(text, name+verb)
	}
	if text == "" {
		return ""
	}

	return strings.ToUpper(text[:1]) + text[1:] + "."
}
