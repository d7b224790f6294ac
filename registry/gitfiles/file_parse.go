package gitfiles

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"promptspool/api/wire/jsonscan"
	"promptspool/api/wire/yamlreader"
)

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
