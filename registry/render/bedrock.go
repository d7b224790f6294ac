package render

import (
	"encoding/json"
	"strings"

	"promptspool/api/wire"
)

// bedrock makes the arguments of the Converse operation of the AWS clients (boto3's client.converse, ConverseCommand in
// JavaScript), as the Bedrock Runtime's API reference has them
// (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html). A completion becomes a message of the user.
// Images and documents must be given as s3:// urls: Converse takes the bytes of anything else, which JSON cannot hold.
func bedrock(c *call) (wire.Object, error) {
	kwargs := c.named("modelId")
	if err := c.modernize(); err != nil {
		return nil, err
	}
	if !c.chat {
		c.messages = []message{{at: "prompt_template", role: "user", content: c.content}}
	}
	turns, err := c.turns(c.bedrockMessage)
	if err != nil {
		return nil, err
	}
	kwargs = append(kwargs, memberOf("messages", turnsJSON(turns, "content")))
	system, err := c.system()
	if err != nil {
		return nil, err
	}
	if len(system) > 0 {
		blocks := make([]json.RawMessage, len(system))
		for i, s := range system {
			blocks[i] = newObject().str("text", s).end()
		}
		kwargs = append(kwargs, memberOf("system", array(blocks)))
	}
	if kwargs, err = c.bedrockTools(kwargs); err != nil {
		return nil, err
	}
	return c.bedrockParameters(kwargs), nil
}

// converseMembers are the arguments of Converse that stand beside those that are built.
var converseMembers = strings.Fields("modelId messages system inferenceConfig toolConfig guardrailConfig additionalModelRequestFields promptVariables " +
	"additionalModelResponseFieldPaths requestMetadata performanceConfig serviceTier outputConfig")

// bedrockParameters puts each parameter where Converse wants it: the common ones into inferenceConfig, its own arguments beside
// the others, and whatever else the model may know into additionalModelRequestFields.
func (c *call) bedrockParameters(kwargs wire.Object) wire.Object {
	var inference, additional wire.Object
	merge := func(into *wire.Object, value json.RawMessage) {
		for _, m := range object(value) {
			*into = set(*into, m.Name, m.Value)
		}
	}
	for _, p := range c.parameters {
		switch p.Name {
		case "maxTokens", "temperature", "topP", "stopSequences":
			inference = set(inference, p.Name, p.Value)
		case "inferenceConfig":
			merge(&inference, p.Value)
		case "additionalModelRequestFields":
			merge(&additional, p.Value)
		default:
			if contains(converseMembers, p.Name) {
				kwargs = set(kwargs, p.Name, p.Value)
			} else {
				additional = set(additional, p.Name, p.Value)
			}
		}
	}
	if inference != nil {
		kwargs = append(kwargs, memberOf("inferenceConfig", encode(inference)))
	}
	if additional != nil {
		kwargs = append(kwargs, memberOf("additionalModelRequestFields", encode(additional)))
	}
	return kwargs
}

func (c *call) bedrockMessage(m *message) (role string, blocks []json.RawMessage, err error) {
	for i := range m.content {
		raw, err := c.bedrockBlock(m, &m.content[i])
		if err != nil {
			return "", nil, err
		}
		if raw != nil {
			blocks = append(blocks, raw)
		}
	}
	if m.role == "tool" {
		result := newObject().str("toolUseId", m.toolCallID).raw("content", array(blocks)).end()
		return "user", []json.RawMessage{newObject().raw("toolResult", result).end()}, nil
	}
	for _, call := range m.calls {
		input, err := c.input(m.at, call)
		if err != nil {
			return "", nil, err
		}
		use := newObject().str("toolUseId", call.id).str("name", call.name).raw("input", input).end()
		blocks = append(blocks, newObject().raw("toolUse", use).end())
	}
	return m.role, blocks, nil
}

// bedrockBlock is one block of content; nil for a blank text, which Converse refuses.
func (c *call) bedrockBlock(m *message, b *block) (json.RawMessage, error) {
	if b.unfilled() {
		return nil, nil
	}
	switch b.kind {
	case "text":
		if strings.TrimSpace(b.text) == "" {
			return nil, nil
		}
		return newObject().str("text", b.text).end(), nil
	case "thinking":
		if m.role != "assistant" {
			return nil, c.cannotHold(b, "a message of the role %s; only the assistant thinks", m.role)
		}
		reasoning := newObject().str("text", b.member("thinking"))
		if signature := b.member("signature"); signature != "" {
			reasoning = reasoning.str("signature", signature)
		}
		return newObject().raw("reasoningContent", newObject().raw("reasoningText", reasoning.end()).end()).end(), nil
	case "image_url", "media":
	default:
		return nil, c.cannotHold(b, "a message; take it out")
	}
	f := fileOf(b)
	if !strings.HasPrefix(f.url, "s3://") || f.mime == "" {
		return nil, c.cannotHold(b, "a message, as %s: Converse takes its bytes, which JSON cannot hold; give an s3:// url whose name ends in the format, as .png", f.describe())
	}
	source := newObject().raw("s3Location", newObject().str("uri", f.url).end()).end()
	switch {
	case f.is("image"):
		return newObject().raw("image", newObject().str("format", f.format()).raw("source", source).end()).end(), nil
	case f.is("video"):
		return newObject().raw("video", newObject().str("format", f.format()).raw("source", source).end()).end(), nil
	case f.mime == "application/pdf":
		return newObject().raw("document", newObject().str("format", "pdf").str("name", "document").raw("source", source).end()).end(), nil
	}
	return nil, c.cannotHold(b, "a message, as %s; give an image, a video or a PDF", f.describe())
}

func (c *call) bedrockTools(kwargs wire.Object) (wire.Object, error) {
	if len(c.tools) == 0 {
		return kwargs, nil
	}
	tools := make([]json.RawMessage, len(c.tools))
	for i, t := range c.tools {
		if t.kind != "function" {
			return nil, inexpressible(t.at, "is %q, and Converse takes functions only; take it out", shorten(t.kind))
		}
		spec := t.declaration("inputSchema", newObject().raw("json", t.schema()).end())
		tools[i] = newObject().raw("toolSpec", spec).end()
	}
	config := newObject().raw("tools", array(tools))
	choice := newObject()
	switch c.choice.mode {
	case "":
		return append(kwargs, memberOf("toolConfig", config.end())), nil
	case "auto":
		choice = choice.raw("auto", json.RawMessage("{}"))
	case "required":
		choice = choice.raw("any", json.RawMessage("{}"))
	case "function":
		choice = choice.raw("tool", newObject().str("name", c.choice.name).end())
	case "none":
		return nil, inexpressible("prompt_template.tool_choice", "is none, which Converse does not have; take out the tools, or the choice")
	default:
		return nil, c.noChoice()
	}
	return append(kwargs, memberOf("toolConfig", config.raw("toolChoice", choice.end()).end())), nil
}
