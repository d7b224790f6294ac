package provider

import (
	"fmt"
	"strings"

	"promptspool/api/wire"
	"promptspool/registry/render/language"
	"promptspool/registry/render/prompt"
	"promptspool/registry/render/rawjson"
)

// call is what a provider's arguments are made from. It belongs to one call of Kwargs.
// The prompt in it is shared and must not be changed, but its slices may be replaced.
type call struct {
	prompt.Prompt
	provider   string
	family     string // see family
	model      string // "" if none is known
	apiType    string
	parameters wire.Object // of the metadata, then the request's overrides
	warnings   []string
}

// cannotExpress returns the 422 for what a provider's client has no place for.
func cannotExpress(path, format string, args ...any) error {
	return wire.Invalid(wire.FieldError{Field: path, Reason: fmt.Sprintf(format, args...)})
}

// cannotHold returns the 422 for a block that has no place in something.
func (c *call) cannotHold(b *prompt.Block, format string, args ...any) error {
	return cannotExpress(b.At, "is %q, which %s cannot hold in %s",
		language.Shorten(b.Kind), c.provider, fmt.Sprintf(format, args...))
}

func (c *call) warn(format string, args ...any) {
	if len(c.warnings) < language.FaultsMax {
		c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
	}
}

// warnName warns that the name of a message was left out.
func (c *call) warnName(m *prompt.Message) {
	c.warn("The name of %s was left out: %s has no place for it.", prompt.Place(m.At), c.provider)
}

// newKwargs begins the arguments with the model's name, if one is known.
func (c *call) newKwargs(member string) wire.Object {
	kwargs := make(wire.Object, 0, 8+len(c.parameters))
	if c.model != "" {
		kwargs = append(kwargs, rawjson.MemberOf(member, rawjson.Quote(c.model)))
	}

	return kwargs
}

// size estimates how long the messages are in JSON.
func (c *call) size() int {
	size := 64
	for i := range c.Messages {
		size += 64
		for j := range c.Messages[i].Content {
			text := len(c.Messages[i].Content[j].Text)
			size += text + text/16 + 48
		}
	}

	return size
}

// completionText joins the text blocks of a completion.
func (c *call) completionText() (string, error) { return c.joinedText(c.Content, "a completion") }

// messageText joins the text blocks of a message.
func (c *call) messageText(m *prompt.Message) (string, error) {
	return c.joinedText(m.Content, "a message of the role "+m.Role)
}

func (c *call) joinedText(blocks []prompt.Block, where string) (string, error) {
	if len(blocks) == 1 && blocks[0].Kind == "text" {
		return blocks[0].Text, nil
	}

	var b strings.Builder
	for i := range blocks {
		// Images that the caller did not give are left out here as in a chat.
		if blocks[i].IsUnfilled() {
			continue
		}
		if blocks[i].Kind != "text" {
			return "", c.cannotHold(&blocks[i], "%s, which takes text only", where)
		}
		b.WriteString(blocks[i].Text)
	}

	return b.String(), nil
}

// useTools turns the older functions into tools: functions, function_call, and messages
// of the role function.
func (c *call) useTools() error {
	// The cap makes append copy: the prompt is shared.
	c.Tools = append(c.Tools[:len(c.Tools):len(c.Tools)], c.Functions...)
	if c.Choice.Raw == nil {
		c.Choice = c.Call
	}
	if !c.hasFunctionMessages() {
		return nil
	}

	// Tools answer by the id of a call, functions by name: the last call of a name is
	// meant.
	messages := make([]prompt.Message, len(c.Messages))
	ids := make(map[string]string)
	for i, m := range c.Messages {
		if call := m.FunctionCall; call != nil {
			id := fmt.Sprintf("call_%d", i)
			ids[call.Name] = id
			m.Calls = append(m.Calls[:len(m.Calls):len(m.Calls)], prompt.ToolCall{
				ID:        id,
				Name:      call.Name,
				Arguments: call.Arguments,
			})
			m.FunctionCall = nil
		}
		if m.Role == "function" {
			id, ok := ids[m.Name]
			if !ok {
				return cannotExpress(m.At,
					"gives the result of %q, which no message before it called; %s needs the call as well",
					language.Shorten(m.Name), c.provider)
			}
			m.Role, m.ToolCallID = "tool", id
		}
		messages[i] = m
	}
	c.Messages = messages

	return nil
}

func (c *call) hasFunctionMessages() bool {
	for i := range c.Messages {
		if c.Messages[i].FunctionCall != nil || c.Messages[i].Role == "function" {
			return true
		}
	}

	return false
}
