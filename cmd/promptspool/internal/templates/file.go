package templates

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	"promptspool/cmd/promptspool/internal/yamlreader"
	"promptspool/registry/render"
)

// templateBytesMax bounds a file that holds a template.
const templateBytesMax = 1 << 20

// What the objects in a file may hold. Content blocks, parameters and tools are as the API takes them.
var (
	fileMembers      = []string{"name", "tags", "model", "metadata", "prompt_template"}
	blueprintMembers = []string{"type", "messages", "content", "template_format", "input_variables", "tools", "functions", "tool_choice", "function_call"}
	messageMembers   = []string{"role", "content", "name", "template_format", "input_variables", "tool_calls", "tool_call_id", "function_call", "raw_request_display_role"}
	modelMembers     = []string{"provider", "name", "parameters", "api_type", "base_model", "model_config_display_name", "display_params"}
)

// yamlFault begins what the library says of text that is no YAML; not all of it has a line.
var yamlFault = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// templateFile is a template as a file holds it: its newest version, and its tags.
type templateFile struct {
	path     string // within the folder, with slashes
	template wire.Publish
	content  []byte
	lines    map[string]int        // of values, by their path
	scalars  map[string]*yaml.Node // those of them that are texts
	findings []wire.Finding        // what of it cannot be rendered
}

// parseTemplate reads a file strictly and reports all that is wrong with it, each with its line. name is the template's unless the
// file has another.
func parseTemplate(path, name string, content []byte) (*templateFile, error) {
	p := templateParser{
		Reader:  yamlreader.Reader{Path: path},
		lines:   map[string]int{"": 1},
		scalars: map[string]*yaml.Node{},
		parts:   map[string]json.RawMessage{},
	}
	if len(content) > templateBytesMax {
		return nil, fmt.Errorf("%s: is larger than %d bytes", path, templateBytesMax)
	}
	var document yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s:%s", path, yamlFault.ReplaceAllString(err.Error(), "$1: is not YAML: "))
	}
	if decoder.Decode(new(yaml.Node)) != io.EOF {
		p.Fault(1, "there is more than one document, or something that is no YAML behind the first; keep one")
	}
	if len(document.Content) == 1 {
		p.root(document.Content[0])
	}
	p.whole()
	if len(p.Faults) > 0 {
		return nil, errors.Join(p.Faults...)
	}
	file := &templateFile{path: path, content: content, lines: p.lines, scalars: p.scalars}
	body := p.body(name)
	o, err := wire.ParseObject(body)
	if err == nil {
		file.template, err = wire.DecodePublish(o)
	}
	if err != nil {
		return nil, file.refused(err)
	}
	blueprint, faults := render.Check(file.template.Blueprint)
	for _, f := range render.CheckMetadata(file.template.Metadata) {
		faults = append(faults, wire.FieldError{Field: strings.TrimSuffix("metadata."+f.Field, "."), Reason: f.Reason})
	}
	if len(faults) > 0 {
		return nil, file.refused(wire.Invalid(faults...))
	}
	file.template.Blueprint = blueprint
	if file.template.Metadata == nil {
		file.template.Metadata = json.RawMessage("null")
	}
	return file, nil
}

// templateParser makes JSON of a file.
type templateParser struct {
	yamlreader.Reader
	lines     map[string]int
	scalars   map[string]*yaml.Node
	parts     map[string]json.RawMessage // fileMembers
	blueprint []string                   // members of the blueprint, as JSON, in their order
}

func (p *templateParser) root(node *yaml.Node) {
	p.Members(node, "the file", func(key, value *yaml.Node) {
		switch {
		case slices.Contains(blueprintMembers, key.Value):
			if raw := p.value(key.Value, value); raw != nil {
				p.blueprint = append(p.blueprint, string(jsonscan.AppendString(nil, key.Value))+":"+string(raw))
			}
		case slices.Contains(fileMembers, key.Value):
			p.parts[key.Value] = p.value(key.Value, value)
		default:
			p.Fault(key.Line, "there is no setting %q of a template; there are: %s", key.Value, strings.Join(append(slices.Clone(fileMembers), blueprintMembers...), ", "))
		}
	})
}

// whole looks at what the settings are together.
func (p *templateParser) whole() {
	switch {
	case p.parts["prompt_template"] != nil && p.blueprint != nil:
		p.Fault(p.lines["prompt_template"], "prompt_template is the whole of it; nothing else of the prompt can stand beside it")
	case p.parts["prompt_template"] == nil && p.blueprint == nil && len(p.Faults) == 0:
		p.Fault(1, "there is no prompt: give messages (of a chat) or content (of a completion)")
	}
	if _, ok := jsonscan.Lookup(orObject(p.parts["metadata"]), "model"); ok && p.parts["model"] != nil {
		p.Fault(p.lines["metadata.model"], "model is given twice")
	}
}

func orObject(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || raw[0] != '{' {
		return json.RawMessage("{}")
	}
	return raw
}

// body is the file as it is published.
func (p *templateParser) body(name string) []byte {
	blueprint := p.parts["prompt_template"]
	if blueprint == nil {
		blueprint = json.RawMessage("{" + strings.Join(p.blueprint, ",") + "}")
	}
	metadata := p.parts["metadata"]
	if model := p.parts["model"]; model != nil {
		metadata = orObject(metadata)
		rest := strings.TrimPrefix(string(metadata), "{")
		if rest != "}" {
			rest = "," + rest
		}
		metadata = json.RawMessage(`{"model":` + string(model) + rest)
	}
	called := p.parts["name"]
	if called == nil {
		called = jsonscan.AppendString(nil, name)
	}
	orNull := func(raw json.RawMessage) json.RawMessage {
		if raw == nil {
			return json.RawMessage("null")
		}
		return raw
	}
	return fmt.Appendf(nil, `{"prompt_template":{"prompt_name":%s,"tags":%s},"prompt_version":{"prompt_template":%s,"metadata":%s}}`,
		called, orNull(p.parts["tags"]), blueprint, orNull(metadata))
}

// refused tells a refusal of the template with the lines that it is about.
func (f *templateFile) refused(err error) error {
	var e *wire.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	if len(e.Fields) == 0 {
		return fmt.Errorf("%s: %s", f.path, e.Message)
	}
	var faults []error
	for _, fault := range e.Fields {
		field := strings.TrimPrefix(fault.Field, "prompt_version.")
		if field == "prompt_template.prompt_name" {
			field = "name"
		}
		if field == "prompt_template" && f.lines[field] == 0 {
			field = ""
		}
		for _, prefix := range []string{"metadata.", "prompt_template."} {
			if trimmed, ok := strings.CutPrefix(field, prefix); ok && f.lines[field] == 0 {
				field = trimmed
			}
		}
		faults = append(faults, fmt.Errorf("%s:%d: %s", f.path, f.line(field), strings.TrimSpace(field+" "+fault.Reason)))
	}
	return errors.Join(faults...)
}

// line is where a value stands, or the nearest around it that the file has.
func (f *templateFile) line(field string) int {
	for field != "" {
		if line := f.lines[field]; line > 0 {
			return line
		}
		field = field[:max(0, strings.LastIndexAny(field, ".["))]
	}
	return 1
}

// strayMember says what an object at a path may not hold; "" if it may.
func strayMember(path, member string) string {
	allowed := []string(nil)
	switch {
	case path == "model", path == "metadata.model":
		allowed = modelMembers
	case strings.HasPrefix(path, "messages[") && strings.HasSuffix(path, "]") && strings.Count(path, "[") == 1:
		allowed = messageMembers
	}
	if allowed == nil || slices.Contains(allowed, member) {
		return ""
	}
	return "there are: " + strings.Join(allowed, ", ")
}
