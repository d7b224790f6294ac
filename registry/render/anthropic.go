package render

import (
	"encoding/json"
	"strings"

	"promptspool/api/wire"
)

// anthropicTokens is max_tokens, which Anthropic requires, where the template does not say it: what every one of its models can
// write.
const anthropicTokens = "4096"

// anthropic makes the arguments of client.messages.create of Anthropic's own clients (also those for Vertex AI and Bedrock), as
// its API reference has them under "Create a Message" (https://docs.anthropic.com/en/api/messages): system texts apart,
// messages of user and assistant in turns, tool calls and their results as content. A completion becomes the arguments of
// client.completions.create, "Create a Text Completion" (https://docs.anthropic.com/en/api/complete).
func anthropic(c *call) (wire.Object, error) {
	kwargs := c.named("model")
	if !c.chat {
		prompt, err := c.completion()
		if !strings.HasPrefix(prompt, "\n\nHuman:") {
			prompt = "\n\nHuman: " + prompt + "\n\nAssistant:"
		}
		for i, p := range c.parameters {
			if p.Name == "max_tokens" {
				c.parameters[i].Name = "max_tokens_to_sample"
			}
		}
		kwargs = append(kwargs, memberOf("max_tokens_to_sample", json.RawMessage(anthropicTokens)), memberOf("prompt", quoted(prompt)))
		return c.parameterized(kwargs), err
	}
	if err := c.modernize(); err != nil {
		return nil, err
	}
	kwargs = append(kwargs, memberOf("max_tokens", json.RawMessage(anthropicTokens)))
	system, err := c.system()
	if err != nil {
		return nil, err
	}
	switch len(system) {
	case 0:
	case 1:
		kwargs = append(kwargs, memberOf("system", quoted(system[0])))
	default:
		blocks := make([]json.RawMessage, len(system))
		for i, s := range system {
			blocks[i] = newObject().str("type", "text").str("text", s).end()
		}
		kwargs = append(kwargs, memberOf("system", array(blocks)))
	}
	turns, err := c.turns(c.anthropicMessage)
	if err != nil {
		return nil, err
	}
	kwargs = append(kwargs, memberOf("messages", turnsJSON(turns, "content")))
	if kwargs, err = c.anthropicTools(kwargs); err != nil {
		return nil, err
	}
	return c.parameterized(kwargs), nil
}

// anthropicMessage is the role and the content blocks of a message. The result of a tool is something that the user says.
func (c *call) anthropicMessage(m *message) (role string, blocks []json.RawMessage, err error) {
	for i := range m.content {
		raw, err := c.anthropicBlock(m, &m.content[i])
		if err != nil {
			return "", nil, err
		}
		if raw != nil {
			blocks = append(blocks, raw)
		}
	}
	if m.role == "tool" {
		result := newObject().str("type", "tool_result").str("tool_use_id", m.toolCallID).raw("content", array(blocks)).end()
		return "user", []json.RawMessage{result}, nil
	}
	for _, call := range m.calls {
		input, err := c.input(m.at, call)
		if err != nil {
			return "", nil, err
		}
		blocks = append(blocks, newObject().str("type", "tool_use").str("id", call.id).str("name", call.name).raw("input", input).end())
	}
	return m.role, blocks, nil
}

// anthropicBlock is one block of content; nil for one that is empty, which Anthropic refuses.
func (c *call) anthropicBlock(m *message, b *block) (json.RawMessage, error) {
	if b.unfilled() {
		return nil, nil
	}
	switch b.kind {
	case "text":
		if strings.TrimSpace(b.text) == "" {
			return nil, nil
		}
		return newObject().str("type", "text").str("text", b.text).end(), nil
	case "thinking":
		if m.role != "assistant" || b.member("signature") == "" {
			return nil, inexpressible(b.at, "is thinking without a signature, or not of the assistant; anthropic takes back what it signed itself only")
		}
		return newObject().str("type", "thinking").str("thinking", b.member("thinking")).str("signature", b.member("signature")).end(), nil
	case "server_tool_use", "web_search_tool_result", "bash_code_execution_tool_result", "text_editor_code_execution_tool_result":
		return encode(b.raw), nil
	case "image_url", "media":
		return c.anthropicFile(m, b)
	}
	return nil, c.cannotHold(b, "a message; take it out")
}

// anthropicFile is an image or a PDF, by url or as data.
func (c *call) anthropicFile(m *message, b *block) (json.RawMessage, error) {
	if m.role == "assistant" {
		return nil, c.cannotHold(b, "a message of the role assistant; put it into one of the role user")
	}
	f := fileOf(b)
	kind := "document"
	switch {
	case f.is("image"):
		kind = "image"
	case f.mime != "application/pdf":
		return nil, c.cannotHold(b, "a message, as %s; give an image or a PDF", f.describe())
	}
	source := newObject()
	if f.data != "" {
		mime := f.mime
		if mime == "" {
			mime = "image/jpeg"
		}
		source = source.str("type", "base64").str("media_type", mime).str("data", f.data)
	} else {
		source = source.str("type", "url").str("url", f.url)
	}
	return newObject().str("type", kind).raw("source", source.end()).end(), nil
}

// anthropicBuiltIns are the names and the versions of the tools that Anthropic runs, where a tool's config does not say them.
var anthropicBuiltIns = map[string][2]string{
	"web_search":       {"web_search", "web_search_20250305"},
	"code_interpreter": {"code_execution", "code_execution_20250825"},
	"bash":             {"bash", "bash_20250124"},
	"text_editor":      {"str_replace_based_edit_tool", "text_editor_20250728"},
}

func (c *call) anthropicTools(kwargs wire.Object) (wire.Object, error) {
	if len(c.tools) == 0 {
		return kwargs, nil
	}
	tools := make([]json.RawMessage, len(c.tools))
	for i, t := range c.tools {
		if t.kind != "function" {
			config, err := c.builtIn(t)
			if err != nil {
				return nil, err
			}
			known, ok := anthropicBuiltIns[t.kind]
			if _, said := config.Get("type"); !ok && !said {
				return nil, inexpressible(t.at, "is %q, which anthropic does not have; take it out", shorten(t.kind))
			}
			out := wire.Object{memberOf("type", quoted(known[1])), memberOf("name", quoted(known[0]))}
			for _, m := range config {
				out = set(out, m.Name, m.Value)
			}
			tools[i] = encode(out)
			continue
		}
		tools[i] = t.declaration("input_schema", t.schema())
	}
	kwargs = append(kwargs, memberOf("tools", array(tools)))
	choice := newObject()
	switch c.choice.mode {
	case "":
		return kwargs, nil
	case "auto", "none":
		choice = choice.str("type", c.choice.mode)
	case "required":
		choice = choice.str("type", "any")
	case "function":
		choice = choice.str("type", "tool").str("name", c.choice.name)
	default:
		return nil, c.noChoice()
	}
	return append(kwargs, memberOf("tool_choice", choice.end())), nil
}

// noChoice is the 422 for a tool_choice that is not one of those that every provider knows.
func (c *call) noChoice() error {
	return inexpressible("prompt_template.tool_choice", "is %s, which %s does not have; use auto, none, required or a function", shorten(c.choice.mode), c.provider)
}
