// Package gitfiles reads and writes prompt templates as YAML files, which can be kept in
// Git.
//
// A File is one template, a Folder all of a tree. Reading is strict: it reports every
// fault with its line. Writing chooses the most readable form that is read back to the
// same content.
//
// The package knows no server: the commands compare a Folder with one, and publish.
package gitfiles

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	"promptspool/api/wire/yamlreader"
	"promptspool/registry/render"
)

// fileBytesMax bounds the size of a file.
const fileBytesMax = 1 << 20

// File is a template in a file: its newest version and its tags.
type File struct {
	Path     string // within the folder, with slashes
	Template wire.Publish
	Findings []wire.Finding // what cannot be rendered; set by Folder.PublishOrder

	content []byte
	lines   map[string]int        // of every value, by its path
	scalars map[string]*yaml.Node // by their path
}

// Parse reads a file strictly, and reports everything that is wrong with it, with line
// numbers.
//
// name is the template's name unless the file gives another.
func Parse(file, name string, content []byte) (*File, error) {
	p := newFileParser(file)
	body, err := p.parse(name, content)
	if err != nil {
		return nil, err
	}

	// The API's own decoder checks the fields, as if the file had been sent.
	t := &File{Path: file, content: content, lines: p.lines, scalars: p.scalars}
	o, err := wire.ParseObject(body)
	if err == nil {
		t.Template, err = wire.DecodePublish(o)
	}
	if err != nil {
		return nil, t.LocateErrors(err)
	}

	// The server checks these when it publishes; here they are found before anything is
	// sent.
	blueprint, faults := render.Check(t.Template.Blueprint)
	for _, f := range render.CheckMetadata(t.Template.Metadata) {
		field := strings.TrimSuffix("metadata."+f.Field, ".")
		faults = append(faults, wire.FieldError{Field: field, Reason: f.Reason})
	}
	if len(faults) > 0 {
		return nil, t.LocateErrors(wire.Invalid(faults...))
	}

	t.Template.Blueprint = blueprint
	if t.Template.Metadata == nil {
		t.Template.Metadata = json.RawMessage("null")
	}
	return t, nil
}

// LocateErrors adds the file's name and lines to the errors of a request about the
// template.
func (f *File) LocateErrors(err error) error {
	var e *wire.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	if len(e.Fields) == 0 {
		return fmt.Errorf("%s: %s", f.Path, e.Message)
	}

	var faults []error
	for _, fault := range e.Fields {
		field := f.fileField(fault.Field)
		text := strings.TrimSpace(field + " " + fault.Reason)
		faults = append(faults, fmt.Errorf("%s:%d: %s", f.Path, f.line(field), text))
	}
	return errors.Join(faults...)
}

// fileField returns the name that a field of the publish request has in the file.
func (f *File) fileField(field string) string {
	field = strings.TrimPrefix(field, "prompt_version.")
	if field == "prompt_template.prompt_name" {
		field = "name"
	}
	if field == "prompt_template" && f.lines[field] == 0 {
		field = ""
	}

	// A file may give the members of these objects at its top.
	for _, prefix := range []string{"metadata.", "prompt_template."} {
		if trimmed, ok := strings.CutPrefix(field, prefix); ok && f.lines[field] == 0 {
			field = trimmed
		}
	}
	return field
}

// line returns the line of a value, or of the nearest value around it that is in the
// file.
func (f *File) line(field string) int {
	for field != "" {
		if line := f.lines[field]; line > 0 {
			return line
		}
		field = parentPath(field)
	}
	return 1
}

// parentPath returns the path of the value that holds the one at field; "" at the top.
func parentPath(field string) string {
	return field[:max(0, strings.LastIndexAny(field, ".["))]
}

// Locate formats a finding with its place in the file: FILE:LINE:COLUMN: FIELD MESSAGE.
func (f *File) Locate(finding wire.Finding) string {
	field := finding.Path
	if f.lines["prompt_template"] > 0 {
		field = "prompt_template." + field
	}

	// The file may have a plain text where the blueprint has a list with one block.
	for field != "" && f.scalars[field] == nil {
		field = parentPath(field)
	}
	if field == "" {
		return fmt.Sprintf("%s:%d:1: %s %s", f.Path, f.line(finding.Path), finding.Path, finding.Message)
	}

	line, column, exact := inScalar(f.content, f.scalars[field], finding.Line, finding.Column)
	if !exact {
		return fmt.Sprintf("%s:%d:%d: %s, in line %d, column %d of its text, %s",
			f.Path, line, column, field, finding.Line, finding.Column, finding.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s %s", f.Path, line, column, field, finding.Message)
}

// needsName reports whether a file must give the template's name, because its path does
// not.
func (f *File) needsName() bool {
	return f.Template.Name != strings.TrimSuffix(f.Path, path.Ext(f.Path))
}

// The objects that a file may hold. Content blocks, parameters and tools are as the API
// takes them.
var (
	fileMembers      = []string{"name", "tags", "model", "metadata", "prompt_template"}
	blueprintMembers = []string{
		"type", "messages", "content", "template_format", "input_variables", "tools", "functions",
		"tool_choice", "function_call",
	}
	messageMembers = []string{
		"role", "content", "name", "template_format", "input_variables", "tool_calls", "tool_call_id",
		"function_call", "raw_request_display_role",
	}
	modelMembers = []string{
		"provider", "name", "parameters", "api_type", "base_model", "model_config_display_name",
		"display_params",
	}
)

// yamlFault matches the beginning of the YAML library's errors. Some have no line.
var yamlFault = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// fileParser turns a file into the JSON body that publishes it.
type fileParser struct {
	yamlreader.Reader
	lines     map[string]int
	scalars   map[string]*yaml.Node
	parts     map[string]json.RawMessage // fileMembers
	blueprint []string                   // members of the blueprint, as JSON, in their order
}

func newFileParser(path string) *fileParser {
	return &fileParser{
		Reader:  yamlreader.Reader{Path: path},
		lines:   map[string]int{"": 1},
		scalars: map[string]*yaml.Node{},
		parts:   map[string]json.RawMessage{},
	}
}

// parse returns the body of the publish request, or all faults of the file's form.
func (p *fileParser) parse(name string, content []byte) ([]byte, error) {
	if len(content) > fileBytesMax {
		return nil, fmt.Errorf("%s: is larger than %d bytes", p.Path, fileBytesMax)
	}

	var document yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s:%s", p.Path, yamlFault.ReplaceAllString(err.Error(), "$1: is not YAML: "))
	}
	if decoder.Decode(new(yaml.Node)) != io.EOF {
		p.Fault(1, "there is more than one document, or something that is not YAML after the first; keep one")
	}

	if len(document.Content) == 1 {
		p.root(document.Content[0])
	}
	p.checkWhole()
	if len(p.Faults) > 0 {
		return nil, errors.Join(p.Faults...)
	}
	return p.body(name), nil
}

// root reads the settings at the top of the file.
func (p *fileParser) root(node *yaml.Node) {
	p.Members(node, "the file", func(key, value *yaml.Node) {
		switch {
		case slices.Contains(blueprintMembers, key.Value):
			if raw := p.value(key.Value, value); raw != nil {
				member := string(jsonscan.AppendString(nil, key.Value)) + ":" + string(raw)
				p.blueprint = append(p.blueprint, member)
			}
		case slices.Contains(fileMembers, key.Value):
			p.parts[key.Value] = p.value(key.Value, value)
		default:
			known := append(slices.Clone(fileMembers), blueprintMembers...)
			p.Fault(key.Line, "there is no setting %q of a template; there are: %s",
				key.Value, strings.Join(known, ", "))
		}
	})
}

// checkWhole checks the settings against each other.
func (p *fileParser) checkWhole() {
	switch {
	case p.parts["prompt_template"] != nil && p.blueprint != nil:
		p.Fault(p.lines["prompt_template"],
			"prompt_template is the whole prompt; remove the prompt's other settings")
	case p.parts["prompt_template"] == nil && p.blueprint == nil && len(p.Faults) == 0:
		p.Fault(1, "there is no prompt: give messages (of a chat) or content (of a completion)")
	}

	_, inMetadata := jsonscan.Lookup(orObject(p.parts["metadata"]), "model")
	if inMetadata && p.parts["model"] != nil {
		p.Fault(p.lines["metadata.model"], "model is given twice")
	}
}

// body returns the file as the body of the publish request.
func (p *fileParser) body(name string) []byte {
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

	quotedName := p.parts["name"]
	if quotedName == nil {
		quotedName = jsonscan.AppendString(nil, name)
	}

	return fmt.Appendf(nil, `{"prompt_template":{"prompt_name":%s,"tags":%s},`+
		`"prompt_version":{"prompt_template":%s,"metadata":%s}}`,
		quotedName, orNull(p.parts["tags"]), blueprint, orNull(metadata))
}

// orObject returns raw if it is an object, otherwise an empty object.
func orObject(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || raw[0] != '{' {
		return json.RawMessage("{}")
	}
	return raw
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

// unknownMember returns why the object at a path cannot hold a member; "" if it can.
func unknownMember(path, member string) string {
	var allowed []string
	isMessage := strings.HasPrefix(path, "messages[") && strings.HasSuffix(path, "]") &&
		strings.Count(path, "[") == 1
	switch {
	case path == "model", path == "metadata.model":
		allowed = modelMembers
	case isMessage:
		allowed = messageMembers
	}

	if allowed == nil || slices.Contains(allowed, member) {
		return ""
	}
	return "there are: " + strings.Join(allowed, ", ")
}

// inScalar finds the place in a file of one character of a scalar's text.
//
// textLine and textColumn are the character's place in the text. If that line of the text is not
// in the file verbatim, because it is folded or has escapes, inScalar returns where the
// scalar begins, and exact is false.
func inScalar(content []byte, n *yaml.Node, textLine, textColumn int) (line, column int, exact bool) {
	line, skipped := n.Line, n.Column-1
	switch {
	// The text begins after the line with the |.
	case n.Style&yaml.LiteralStyle != 0:
		line, skipped = n.Line+textLine, 0
	case strings.Contains(n.Value, "\n"):
		return n.Line, n.Column, false
	}

	lines, text := strings.Split(string(content), "\n"), strings.Split(n.Value, "\n")
	if line > len(lines) || textLine > len(text) {
		return n.Line, n.Column, false
	}
	written := []rune(lines[line-1])
	before, _, found := strings.Cut(string(written[min(skipped, len(written)):]), text[textLine-1])
	if !found {
		return n.Line, n.Column, false
	}

	return line, skipped + utf8.RuneCountInString(before) + textColumn, true
}
