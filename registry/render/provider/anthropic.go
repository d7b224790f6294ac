package provider

import (
	"encoding/json"
	"strings"

	"promptspool/api/wire"
	"promptspool/registry/render/language"
	"promptspool/registry/render/prompt"
	"promptspool/registry/render/rawjson"
)

// anthropicTokens is max_tokens, which Anthropic requires, if the template does not set
// it. Every one of its models can write that many.
const anthropicTokens = "4096"

// anthropic makes the arguments of client.messages.create of Anthropic's own clients,
// also those for Vertex AI and Bedrock. See "Create a Message"
// (https://docs.anthropic.com/en/api/messages): system texts apart, messages of user and
// assistant in turns, tool calls and their results as content.
//
// A completion becomes the arguments of client.completions.create, "Create a Text
// Completion" (https://docs.anthropic.com/en/api/complete).
func anthropic(c *call) wire.Object {
	if !c.Chat {
		return c.anthropicCompletion()
	}
	kwargs := append(c.newKwargs("model"), rawjson.MemberOf("max_tokens", json.RawMessage(anthropicTokens)))
	system := c.system(textPart)
	// One text is a plain string, as most people write it; several keep their borders as
	// blocks.
	switch len(system) {
	case 0:
	case 1:
		kwargs = append(kwargs, rawjson.MemberOf("system", rawjson.Member(system[0], "text")))
	default:
		kwargs = append(kwargs, rawjson.MemberOf("system", rawjson.Array(system)))
	}

	turns := c.turns(dialect{c.anthropicBlock, anthropicCall, c.anthropicResult})
	kwargs = append(kwargs, rawjson.MemberOf("messages", turnsJSON(turns, "content")))

	return c.withChoice(c.withTools(kwargs, c.anthropicTool), anthropicChoices)
}

func (c *call) anthropicCompletion() wire.Object {
	text := c.completionText()
	// The API rejects prompts that are not in this form.
	if !strings.HasPrefix(text, "\n\nHuman:") {
		text = "\n\nHuman: " + text + "\n\nAssistant:"
	}
	for i, p := range c.parameters {
		if p.Name == "max_tokens" {
			c.parameters[i].Name = "max_tokens_to_sample"
		}
	}

	kwargs := append(c.newKwargs("model"),
		rawjson.MemberOf("max_tokens_to_sample", json.RawMessage(anthropicTokens)),
		rawjson.MemberOf("prompt", rawjson.Quote(text)))

	return kwargs
}

// anthropicResult writes the result of a tool, whose content is the blocks of its message.
func (c *call) anthropicResult(m *prompt.Message) json.RawMessage {
	return rawjson.Form(`{"type":"tool_result","tool_use_id":$,"content":$}`,
		m.ToolCallID, rawjson.Array(eachBlock(m, c.anthropicBlock)))
}

func anthropicCall(call prompt.ToolCall, input json.RawMessage) json.RawMessage {
	return rawjson.Form(`{"type":"tool_use","id":$,"name":$,"input":$}`, call.ID, call.Name, input)
}

// anthropicBlock writes one block of content; nil for an empty one, which Anthropic
// rejects.
func (c *call) anthropicBlock(m *prompt.Message, b *prompt.Block) json.RawMessage {
	switch b.Kind {
	case "text":
		if strings.TrimSpace(b.Text) == "" {
			return nil
		}
		return textPart(b.Text)
	case "thinking":
		signature := b.StringMember("signature")
		if m.Role != "assistant" || signature == "" {
			return c.reject(b.At, "is thinking without a signature, or not of the assistant; "+
				"anthropic takes back what it signed itself only")
		}
		return rawjson.Form(`{"type":"thinking","thinking":$,"signature":$}`,
			b.StringMember("thinking"), signature)

	case "server_tool_use", "web_search_tool_result", "bash_code_execution_tool_result",
		"text_editor_code_execution_tool_result":
		// Results of Anthropic's own tools go back as they came.
		return rawjson.Encode(b.Raw)
	case "image_url", "media":
		return c.anthropicFile(m, b)
	}

	return c.cannotHold(b, "a message; take it out")
}

// anthropicFile writes an image or a PDF, by url or as data.
func (c *call) anthropicFile(m *prompt.Message, b *prompt.Block) json.RawMessage {
	if m.Role == "assistant" {
		return c.cannotHold(b, "a message of the role assistant; put it into one of the role user")
	}
	f := fileOf(b)
	kind := "document"
	switch {
	case f.is("image"):
		kind = "image"
	case f.mime != "application/pdf":
		return c.cannotHold(b, "a message, as %s; give an image or a PDF", f.describe())
	}

	source := rawjson.Form(`{"type":"url","url":$}`, f.url)
	if f.data != "" {
		source = rawjson.Form(`{"type":"base64","media_type":$,"data":$}`, f.dataType(), f.data)
	}

	return rawjson.Form(`{"type":$,"source":$}`, kind, source)
}

// anthropicBuiltIns are the names and the versions of the tools that Anthropic runs, if a
// tool's config does not give them.
var anthropicBuiltIns = map[string][2]string{
	"web_search":       {"web_search", "web_search_20250305"},
	"code_interpreter": {"code_execution", "code_execution_20250825"},
	"bash":             {"bash", "bash_20250124"},
	"text_editor":      {"str_replace_based_edit_tool", "text_editor_20250728"},
}

var anthropicChoices = choices{
	"auto":     `{"type":"auto"}`,
	"none":     `{"type":"none"}`,
	"required": `{"type":"any"}`,
	"function": `{"type":"tool","name":$}`,
}

func (c *call) anthropicTool(t prompt.Tool) json.RawMessage {
	if t.Kind == "function" {
		return declare(&t, "input_schema", schemaOf(&t))
	}

	config := c.builtIn(t)
	known, ok := anthropicBuiltIns[t.Kind]
	if !ok && !config.Has("type") {
		return c.reject(t.At, "is %q, which anthropic does not have; take it out",
			language.Shorten(t.Kind))
	}

	out := wire.Object{
		rawjson.MemberOf("type", rawjson.Quote(known[1])),
		rawjson.MemberOf("name", rawjson.Quote(known[0])),
	}
	// The published config may name a newer version than ours.
	return rawjson.Encode(rawjson.Merge(out, config))
}
