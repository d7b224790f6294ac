package render

import (
	"encoding/json"
	"fmt"
	"strings"

	"promptspool/api/wire"
)

// call is what a provider's arguments are made from. It belongs to one Kwargs; the prompt in it is shared and must not be changed,
// but its slices may be replaced.
type call struct {
	prompt
	provider   string
	family     string // whose models they are: see family
	model      string // "" if none is known
	apiType    string
	parameters wire.Object // of the metadata, then the request's overrides
	warnings   []string
}

// inexpressible is the 422 for what a provider's client has no place for.
func inexpressible(path, format string, args ...any) error {
	return wire.Invalid(wire.FieldError{Field: path, Reason: fmt.Sprintf(format, args...)})
}

// cannotHold is the 422 for a block that has no place in something.
func (c *call) cannotHold(b *block, format string, args ...any) error {
	return inexpressible(b.at, "is %q, which %s cannot hold in %s", shorten(b.kind), c.provider, fmt.Sprintf(format, args...))
}

func (c *call) warn(format string, args ...any) {
	if len(c.warnings) < faultsMax {
		c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
	}
}

// named begins the arguments with the model's name, if one is known.
func (c *call) named(member string) wire.Object {
	kwargs := make(wire.Object, 0, 8+len(c.parameters))
	if c.model != "" {
		kwargs = append(kwargs, memberOf(member, quoted(c.model)))
	}
	return kwargs
}

// size is about how long its messages are in JSON.
func (c *call) size() int {
	size := 64
	for i := range c.messages {
		size += 64
		for j := range c.messages[i].content {
			text := len(c.messages[i].content[j].text)
			size += text + text/16 + 48
		}
	}
	return size
}

// parameterized puts the parameters beside what was built; they win.
func (c *call) parameterized(kwargs wire.Object) wire.Object {
	for _, p := range c.parameters {
		kwargs = set(kwargs, p.Name, p.Value)
	}
	return kwargs
}

// completion joins the text blocks of a completion.
func (c *call) completion() (string, error) { return c.joined(c.content, "a completion") }

// textOf joins the text blocks of a message.
func (c *call) textOf(m *message) (string, error) {
	return c.joined(m.content, "a message of the role "+m.role)
}

func (c *call) joined(blocks []block, where string) (string, error) {
	if len(blocks) == 1 && blocks[0].kind == "text" {
		return blocks[0].text, nil
	}
	var b strings.Builder
	for i := range blocks {
		if blocks[i].unfilled() {
			continue
		}
		if blocks[i].kind != "text" {
			return "", c.cannotHold(&blocks[i], "%s, which takes text only", where)
		}
		b.WriteString(blocks[i].text)
	}
	return b.String(), nil
}

// modernize brings the older functions into the form of tools: functions, function_call, and messages of the role function.
func (c *call) modernize() error {
	c.tools = append(c.tools[:len(c.tools):len(c.tools)], c.functions...)
	if c.choice.raw == nil {
		c.choice = c.call
	}
	old := false
	for i := range c.messages {
		old = old || c.messages[i].functionCall != nil || c.messages[i].role == "function"
	}
	if !old {
		return nil
	}
	messages := make([]message, len(c.messages))
	ids := make(map[string]string) // of the last call of each function
	for i, m := range c.messages {
		if call := m.functionCall; call != nil {
			id := fmt.Sprintf("call_%d", i)
			ids[call.name] = id
			m.calls = append(m.calls[:len(m.calls):len(m.calls)], toolCall{id: id, name: call.name, arguments: call.arguments})
			m.functionCall = nil
		}
		if m.role == "function" {
			id, ok := ids[m.name]
			if !ok {
				return inexpressible(m.at, "gives the result of %q, which no message before it called; %s needs the call as well", shorten(m.name), c.provider)
			}
			m.role, m.toolCallID = "tool", id
		}
		messages[i] = m
	}
	c.messages = messages
	return nil
}

// builtIn is the config of a tool that the provider runs itself.
func (c *call) builtIn(t tool) (wire.Object, error) {
	if by := text(member(t.raw, "provider")); by != "" && family(by, "") != family(c.provider, "") && family(by, "") != c.family {
		return nil, inexpressible(t.at, "is the tool %q of %s, which %s does not have; take it out", shorten(t.kind), shorten(by), c.provider)
	}
	return object(member(t.raw, "config")), nil
}

// schema is the parameters of a function; one without takes none.
func (t *tool) schema() json.RawMessage {
	if t.parameters == nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return t.parameters
}

// input is the arguments of a call as an object.
func (c *call) input(at string, call toolCall) (json.RawMessage, error) {
	if strings.TrimSpace(call.arguments) == "" {
		return json.RawMessage("{}"), nil
	}
	o, err := wire.ParseObject([]byte(call.arguments))
	if err != nil {
		return nil, inexpressible(at, "calls %q with arguments that are no JSON object, and %s takes nothing else", shorten(call.name), c.provider)
	}
	return encode(o), nil
}

// unfilled says whether it stands for images that nobody gave: it is left out.
func (b *block) unfilled() bool { return b.variable != "" && b.text == "" }

func (b *block) has(name string) bool { _, ok := b.raw.Get(name); return ok }

func (b *block) member(name string) string { v, _ := b.raw.Get(name); return text(v) }

// without is an object less one member.
func without(o wire.Object, name string) wire.Object {
	var rest wire.Object
	for _, m := range o {
		if m.Name != name {
			rest = append(rest, m)
		}
	}
	return rest
}
