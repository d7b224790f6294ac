package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"promptspool/api/wire/jsonscan"
)

// Publish is the body of POST /rest/prompt-templates. Raw members alias the body that it
// was decoded from.
type Publish struct {
	Name          string
	Tags          []string // nil: keep the current ones
	Blueprint     json.RawMessage
	Metadata      json.RawMessage // nil if absent
	CommitMessage string
	Labels        []string
	ExternalIDs   []ExternalID // nil: keep the current ones

	// Not part of the body:
	Author string // an email, or the id of a key; "" is the identity's key
	Base   *int   // publish only if this is the latest version, 0 for none; nil means always
}

// Published answers a publish.
type Published struct {
	Success       bool            `json:"success"`
	ID            int64           `json:"id"` // the template's id
	Name          string          `json:"prompt_name"`
	VersionID     int64           `json:"prompt_version_id"`
	VersionNumber int             `json:"version_number"`
	Tags          []string        `json:"tags"` // the template's tags
	Labels        []string        `json:"release_labels"`
	Blueprint     json.RawMessage `json:"prompt_template"`
	Metadata      json.RawMessage `json:"metadata"`
	CommitMessage *string         `json:"commit_message"`
	ExternalIDs   []ExternalID    `json:"external_ids"`
	Warnings      []Finding       `json:"warnings"` // parts that cannot be rendered, or are hardly meant so
	Warning       *string         `json:"warning"`  // null if everything was done as asked
}

// Finding is a place in a template that cannot be rendered. Such a version can be
// published; apps that fetch it get that text as it was written.
type Finding struct {
	Path    string `json:"path"`    // of the text within the blueprint: messages[1].content[0].text
	Line    int    `json:"line"`    // within that text, from 1
	Column  int    `json:"column"`  // in characters, from 1
	Message string `json:"message"` // a predicate: "has a { that is not closed"
}

// String returns the finding as one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", f.Path, f.Line, f.Column, f.Message)
}

// DecodePublish reads POST /rest/prompt-templates. Its prompt_template and prompt_version
// may each have more members than they need, because some SDKs send one object as both.
// The registry checks the blueprint.
func DecodePublish(object Object) (Publish, error) {
	f := fields{object: object}
	base, version := f.within("prompt_template"), f.within("prompt_version")
	labels, externalIDs := f.tags("release_labels"), f.externalIDs("external_ids")
	if f.errs != nil {
		return Publish{}, f.err()
	}

	p := Publish{
		Name:          base.text("prompt_name", true, NameRunesMax),
		Tags:          base.tags("tags"),
		Blueprint:     version.json("prompt_template", true),
		Metadata:      version.json("metadata", false),
		CommitMessage: version.text("commit_message", false, CommitMessageRunesMax),
		Labels:        labels,
		ExternalIDs:   externalIDs,
	}

	// Faults name the field by its path in the whole body.
	for _, e := range base.errs {
		f.fault("prompt_template."+e.Field, "%s", e.Reason)
	}
	for _, e := range version.errs {
		f.fault("prompt_version."+e.Field, "%s", e.Reason)
	}
	f.templateName("prompt_template.prompt_name", p.Name)
	f.labels("release_labels", labels)

	return p, f.err()
}

// DecodeOldPublish reads the older spelling of a publish, which has everything in one
// object.
func DecodeOldPublish(object Object) (Publish, error) {
	f := fields{object: object}
	p := Publish{
		Name:          f.text("prompt_name", true, NameRunesMax),
		Tags:          f.tags("tags"),
		Blueprint:     f.json("prompt_template", true),
		Metadata:      f.json("metadata", false),
		CommitMessage: f.text("commit_message", false, CommitMessageRunesMax),
		Labels:        f.tags("release_labels"),
		ExternalIDs:   f.externalIDs("external_ids"),
	}

	f.templateName("prompt_name", p.Name)
	f.labels("release_labels", p.Labels)

	return p, f.err()
}

// externalIDs reads an array of external ids; nil if it is absent.
func (f *fields) externalIDs(name string) []ExternalID {
	v, ok := f.raw(name, false)
	if !ok {
		return nil
	}
	if v[0] != '[' {
		f.fault(name, "must be an array of objects with source and external_id")
		return nil
	}

	ids := []ExternalID{}
	for i, element := range jsonscan.Elements(v) {
		if i == ExternalIDsMax {
			f.fault(name, "has more than %d entries", ExternalIDsMax)
			break
		}
		path := name + "[" + strconv.Itoa(i) + "]"
		object, err := ParseObject(element)
		if err != nil {
			f.fault(path, "must be an object with source and external_id")
			continue
		}

		inner := fields{object: object}
		ids = append(ids, ExternalID{
			Source: inner.text("source", true, SourceRunesMax),
			ID:     inner.text("external_id", true, NameRunesMax),
		})
		for _, e := range inner.errs {
			f.fault(path+"."+e.Field, "%s", e.Reason)
		}
	}

	return ids
}

// within reads a required member that is an object, and returns its members.
func (f *fields) within(name string) *fields {
	inner := &fields{}
	raw := f.json(name, true)
	if raw == nil {
		return inner
	}

	var err error
	inner.object, err = ParseObject(raw)
	if err != nil {
		// The body is valid JSON, so this is about one of the members.
		fault := AsError(err).Fields[0]
		f.fault(name+"."+fault.Field, "%s", fault.Reason)
	}

	return inner
}

// templateName checks the name of a template.
func (f *fields) templateName(field, name string) {
	isControl := func(r rune) bool { return r < ' ' || r == 0x7f }
	if strings.TrimSpace(name) != name || strings.ContainsFunc(name, isControl) {
		f.fault(field, "must not begin or end with a blank, nor contain control characters")
	}
}

// labels checks the names of labels.
func (f *fields) labels(field string, names []string) {
	for _, l := range names {
		if l == "" {
			f.fault(field, "must not contain an empty label")
		}
	}
}

// TemplatePatch is the body of PATCH /rest/prompt-templates/{name or id}: how the next
// version differs from its base. Raw members that are nil stay as they are, and those
// that are JSON null are removed. They alias the body that they were decoded from.
type TemplatePatch struct {
	Selector // the base; the zero Selector is the latest version

	// An array replaces all elements; an object replaces those whose indices are its
	// members' names.
	Messages  json.RawMessage `json:"messages,omitempty"`
	Tools     json.RawMessage `json:"tools,omitempty"`
	Functions json.RawMessage `json:"functions,omitempty"`
	Content   json.RawMessage `json:"content,omitempty"`

	FunctionCall    json.RawMessage `json:"function_call,omitempty"`
	ToolChoice      json.RawMessage `json:"tool_choice,omitempty"`
	ModelParameters json.RawMessage `json:"model_parameters,omitempty"` // its members overwrite the existing ones
	ResponseFormat  json.RawMessage `json:"response_format,omitempty"`  // the model parameter of that name

	CommitMessage string   `json:"commit_message,omitempty"`
	Labels        []string `json:"release_labels,omitempty"`
	Author        string   `json:"-"` // "" is the identity's key
}

// DecodePatch reads a patch.
func DecodePatch(object Object) (TemplatePatch, error) {
	const choice = "a string, an object or null"

	f := fields{object: object}
	p := TemplatePatch{
		Selector:      Selector{Version: f.version("version"), Label: f.text("label", false, NameRunesMax)},
		CommitMessage: f.text("commit_message", false, CommitMessageRunesMax),
		Labels:        f.tags("release_labels"),
	}
	if p.Version > 0 && p.Label != "" {
		f.fault("label", "cannot be combined with version; give one of them")
	}

	p.Messages = f.elements("messages", false)
	p.Content = f.elements("content", false)
	p.Tools = f.elements("tools", true)
	p.Functions = f.elements("functions", true)
	p.FunctionCall = f.nullable("function_call", choice, `"{`)
	p.ToolChoice = f.nullable("tool_choice", choice, `"{`)
	p.ResponseFormat = f.nullable("response_format", "an object or null", "{")
	p.ModelParameters = f.json("model_parameters", false)
	if _, twice := jsonscan.Lookup(p.ModelParameters, "response_format"); twice && p.ResponseFormat != nil {
		f.fault("response_format", "is in model_parameters as well; give one of them")
	}
	f.labels("release_labels", p.Labels)

	return p, f.err()
}

// elements reads an object or an array. null counts as absent, unless the elements are
// removable.
func (f *fields) elements(name string, removable bool) json.RawMessage {
	v, _ := f.object.Get(name) // also null
	switch {
	case v == nil, string(v) == "null" && !removable:
		return nil
	case v[0] == '{', v[0] == '[', string(v) == "null":
		return v
	}

	f.fault(name, "must be an object of index and element, or an array of all elements")
	return nil
}

// nullable reads null or a value that begins with one of firsts; nil if it is absent.
func (f *fields) nullable(name, kinds, firsts string) json.RawMessage {
	v, _ := f.object.Get(name) // also null
	if v == nil || string(v) == "null" || bytes.IndexByte([]byte(firsts), v[0]) >= 0 {
		return v
	}

	f.fault(name, "must be %s", kinds)
	return nil
}
