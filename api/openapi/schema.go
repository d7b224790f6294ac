package openapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

const schemaPrefix = "#/components/schemas/"

// schemas makes the schemas of Go types, and keeps those that have a name.
type schemas struct {
	reflector *jsonschema.Reflector
	all       map[string]*jsonschema.Schema
	types     map[string]reflect.Type // of those in all
}

func newSchemas() (*schemas, error) {
	s := &schemas{all: make(map[string]*jsonschema.Schema), types: make(map[string]reflect.Type)}
	comments := new(jsonschema.Reflector)
	for _, folder := range []string{".", "../wire"} {
		if err := comments.AddGoComments("promptspool/api/openapi", folder); err != nil {
			return nil, fmt.Errorf("openapi: %w", err)
		}
	}

	s.reflector = &jsonschema.Reflector{
		AllowAdditionalProperties: true,
		Anonymous:                 true,
		Namer:                     s.name,
		Mapper:                    mapped,
		LookupComment: func(t reflect.Type, field string) string {
			place := strings.TrimSuffix(t.PkgPath()+"."+t.Name()+"."+field, ".")
			return sentence(place[strings.LastIndexByte(place, '.')+1:], comments.CommentMap[place])
		},
	}
	return s, nil
}

// open marks a type whose objects may have members that are not listed.
type open struct{}

// JSONSchemaExtend is what the reflector asks.
func (open) JSONSchemaExtend(s *jsonschema.Schema) { s.AdditionalProperties = jsonschema.TrueSchema }

// name is the name of a type's schema. It panics if two types would share one.
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

// mapped are the types whose form is not that of their Go type.
func mapped(t reflect.Type) *jsonschema.Schema {
	words := func(all ...any) *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Enum: all} }
	switch t {
	case reflect.TypeFor[object]():
		return anyObject()
	case reflect.TypeFor[wire.Pair]():
		name, number := &jsonschema.Schema{Type: "string"}, &jsonschema.Schema{Type: "number"}
		two := uint64(2)
		return &jsonschema.Schema{
			Type: "array", Description: "A name and a number.",
			PrefixItems: []*jsonschema.Schema{name, number}, MinItems: &two, MaxItems: &two,
		}
	case reflect.TypeFor[wire.Kind]():
		return words(wire.KindRequest, wire.KindScore, wire.KindMetadata, wire.KindPrompt, wire.KindGroup)
	case reflect.TypeFor[wire.Scope]():
		return words(wire.ScopeApp, wire.ScopeFull)
	case reflect.TypeFor[wire.ResultCode]():
		return words(wire.ResultInvalid, wire.ResultLater)
	case reflect.TypeFor[wire.Code]():
		codes := make([]any, len(failures))
		for i, f := range failures {
			codes[i] = f.code
		}
		return words(append(codes, wire.CodeMethod)...)
	}
	return nil
}

// anyObject is an object of any members. It says so, because some generators take one without listed members for empty.
func anyObject() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", AdditionalProperties: jsonschema.TrueSchema}
}

// of returns the schema of a value's type: a reference, if the type has a name.
func (s *schemas) of(v any) *jsonschema.Schema {
	schema := s.reflector.Reflect(v)
	for name, definition := range schema.Definitions {
		if s.all[name] == nil {
			s.all[name] = definition
			if t := s.types[name]; t.Kind() == reflect.Struct {
				s.refine(definition, t)
			}
		}
	}
	schema.Version, schema.Definitions = "", nil

	return schema
}

// refine adds what reflection does not see: which members may be null, and what raw JSON holds.
func (s *schemas) refine(schema *jsonschema.Schema, t reflect.Type) {
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		p, ok := schema.Properties.Get(name)
		if !ok {
			continue
		}

		nullable := f.Type.Kind() == reflect.Pointer
		if f.Type == reflect.TypeFor[json.RawMessage]() {
			p, nullable = s.rawMember(name, p)
		}
		if nullable && options == "" {
			p = orNull(p)
		}
		schema.Properties.Set(name, p)
	}
}

// rawMember is the schema of a member that is raw JSON, and whether it may be null.
func (s *schemas) rawMember(name string, p *jsonschema.Schema) (member *jsonschema.Schema, nullable bool) {
	object := anyObject()
	object.Description = p.Description
	switch name {
	case "prompt_template":
		member = s.of(Blueprint{})
		member.Description = p.Description
		return member, false
	case "body":
		return object, false
	case "request", "metadata", "llm_kwargs", "input_variables", "prompt_blueprint":
		return object, true
	default:
		return p, false
	}
}

// orNull is a schema that null fits as well.
func orNull(p *jsonschema.Schema) *jsonschema.Schema {
	if p.Type == "" {
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Ref: p.Ref}, {Type: "null"}}, Description: p.Description}
	}
	p.Extras = map[string]any{"type": []string{p.Type, "null"}}
	p.Type = ""

	return p
}

// query are the parameters that a struct's fields are.
func (s *schemas) query(v any) (all []Parameter) {
	if v == nil {
		return nil
	}

	reflector := *s.reflector
	reflector.ExpandedStruct = true
	reflector.Namer = nil
	schema := reflector.Reflect(v)
	var values map[string]any
	if err := json.Unmarshal(s.example(v), &values); err != nil {
		panic("openapi: " + err.Error())
	}
	for p := schema.Properties.Oldest(); p != nil; p = p.Next() {
		one := Parameter{Name: p.Key, In: "query", Description: p.Value.Description, Schema: p.Value, Example: values[p.Key]}
		for _, required := range schema.Required {
			one.Required = one.Required || required == p.Key
		}
		p.Value.Description = ""
		all = append(all, one)
	}

	return all
}

// example is a value as JSON shows it.
func (s *schemas) example(v any) json.RawMessage {
	text, err := jsonscan.Marshal(filled(reflect.ValueOf(v)).Interface())
	if err != nil {
		panic("openapi: " + err.Error()) // of a value in the table
	}
	return text
}

// filled returns a copy of a value in which lists and maps that are nil are empty, as they are in answers.
func filled(v reflect.Value) reflect.Value {
	to := reflect.New(v.Type()).Elem()
	to.Set(v)
	switch {
	case v.Type() == reflect.TypeFor[json.RawMessage]():
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

// sentence is the comment on a name as a sentence of its own, without the name: the reader has it in front of them.
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
