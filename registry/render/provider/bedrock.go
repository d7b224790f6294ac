package provider

import (
	"encoding/json"
	"slices"
	"strings"

	"promptspool/api/wire"
	"promptspool/registry/render/language"
	"promptspool/registry/render/prompt"
	"promptspool/registry/render/rawjson"
)

// bedrock makes the arguments of the Converse operation of the AWS clients: boto3's
// client.converse, and ConverseCommand in JavaScript. See the Bedrock Runtime's API
// reference
// (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html).
//
// A completion becomes a message of the user. Images and documents must be given as s3://
// urls: Converse takes the bytes of anything else, which JSON cannot hold.
func bedrock(c *call) wire.Object {
	kwargs := c.newKwargs("modelId")
	if !c.Chat {
		c.Messages = []prompt.Message{{At: "prompt_template", Role: "user", Content: c.Content}}
	}

	turns := c.turns(dialect{c.bedrockBlock, bedrockCall, c.bedrockResult})
	kwargs = append(kwargs, rawjson.MemberOf("messages", turnsJSON(turns, "content")))

	system := c.system(bareText)
	if len(system) > 0 {
		kwargs = append(kwargs, rawjson.MemberOf("system", rawjson.Array(system)))
	}

	return c.bedrockParameters(c.bedrockTools(kwargs))
}

// converseMembers lists the arguments of Converse that are not built from parameters.
var converseMembers = strings.Fields(`
	modelId messages system inferenceConfig toolConfig guardrailConfig additionalModelRequestFields
	promptVariables additionalModelResponseFieldPaths requestMetadata performanceConfig serviceTier
	outputConfig`)

// bedrockParameters puts each parameter where Converse wants it: the common ones into
// inferenceConfig, arguments of Converse beside the others, and everything else into
// additionalModelRequestFields.
func (c *call) bedrockParameters(kwargs wire.Object) wire.Object {
	var inference, additional wire.Object
	for _, p := range c.parameters {
		switch p.Name {
		case "maxTokens", "temperature", "topP", "stopSequences":
			inference = rawjson.Set(inference, p.Name, p.Value)
		case "inferenceConfig":
			inference = rawjson.Merge(inference, rawjson.Object(p.Value))
		case "additionalModelRequestFields":
			additional = rawjson.Merge(additional, rawjson.Object(p.Value))
		default:
			if slices.Contains(converseMembers, p.Name) {
				kwargs = rawjson.Set(kwargs, p.Name, p.Value)
			} else {
				additional = rawjson.Set(additional, p.Name, p.Value)
			}
		}
	}

	c.parameters = nil

	if inference != nil {
		kwargs = append(kwargs, rawjson.MemberOf("inferenceConfig", rawjson.Encode(inference)))
	}
	if additional != nil {
		kwargs = append(kwargs, rawjson.MemberOf("additionalModelRequestFields", rawjson.Encode(additional)))
	}

	return kwargs
}

func (c *call) bedrockResult(m *prompt.Message) json.RawMessage {
	return rawjson.Form(`{"toolResult":{"toolUseId":$,"content":$}}`,
		m.ToolCallID, rawjson.Array(eachBlock(m, c.bedrockBlock)))
}

func bedrockCall(call prompt.ToolCall, input json.RawMessage) json.RawMessage {
	return rawjson.Form(`{"toolUse":{"toolUseId":$,"name":$,"input":$}}`, call.ID, call.Name, input)
}

// bedrockBlock writes one block of content; nil for a blank text, which Converse rejects.
func (c *call) bedrockBlock(m *prompt.Message, b *prompt.Block) json.RawMessage {
	switch b.Kind {
	case "text":
		if strings.TrimSpace(b.Text) == "" {
			return nil
		}
		return bareText(b.Text)
	case "thinking":
		if m.Role != "assistant" {
			return c.cannotHold(b, "a message of the role %s; only the assistant thinks", m.Role)
		}
		reasoning := rawjson.NewObject().
			Str("text", b.StringMember("thinking")).
			Some("signature", b.StringMember("signature"))
		return rawjson.Form(`{"reasoningContent":{"reasoningText":$}}`, reasoning.End())
	case "image_url", "media":
		return c.bedrockFile(b)
	}

	return c.cannotHold(b, "a message; take it out")
}

func (c *call) bedrockFile(b *prompt.Block) json.RawMessage {
	// Converse takes bytes or an s3:// url, and needs to know the format of either.
	f := fileOf(b)
	if !strings.HasPrefix(f.url, "s3://") || f.mime == "" {
		return c.cannotHold(b, "a message, as %s: Converse takes its bytes, which JSON cannot hold; "+
			"give an s3:// url whose name ends in the format, as .png", f.describe())
	}

	source := rawjson.Form(`{"s3Location":{"uri":$}}`, f.url)
	kind, out := "", rawjson.NewObject().Str("format", f.format())
	switch {
	case f.is("image"):
		kind = "image"
	case f.is("video"):
		kind = "video"
	case f.mime == "application/pdf":
		// Converse requires a name for a document.
		kind, out = "document", out.Str("name", "document")
	}
	if kind != "" {
		return rawjson.NewObject().Raw(kind, out.Raw("source", source).End()).End()
	}

	return c.cannotHold(b, "a message, as %s; give an image, a video or a PDF", f.describe())
}

var bedrockChoices = choices{
	"auto":     `{"auto":{}}`,
	"required": `{"any":{}}`,
	"function": `{"tool":{"name":$}}`,
}

func (c *call) bedrockTools(kwargs wire.Object) wire.Object {
	if len(c.Tools) == 0 {
		return kwargs
	}

	tools := rawjson.ArrayOf(c.Tools, func(t prompt.Tool) json.RawMessage {
		if t.Kind != "function" {
			return c.reject(t.At, "is %q, and Converse takes functions only; take it out",
				language.Shorten(t.Kind))
		}
		spec := declare(&t, "inputSchema", rawjson.Form(`{"json":$}`, schemaOf(&t)))
		return rawjson.Form(`{"toolSpec":$}`, spec)
	})
	if c.Choice.Mode == "none" {
		c.reject("prompt_template.tool_choice",
			"is none, which Converse does not have; take out the tools, or the choice")
	}
	// Converse keeps tools and their choice in one object.
	config := rawjson.NewObject().
		Raw("tools", tools).
		SomeRaw("toolChoice", c.choice(bedrockChoices))

	return append(kwargs, rawjson.MemberOf("toolConfig", config.End()))
}
