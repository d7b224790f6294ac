package calls

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strings"

	"promptspool/api/wire/jsonscan"
)

// form is how a part of a message is read.
type form int

const (
	formUnknown form = iota
	formText
	formCall
	formResult // of a tool, also of one that the provider ran
	formThinking
	formRefusal
	formFile   // a picture, a sound, or another file
	formNested // has other parts inside, and perhaps a name: a document, a page that was found
	formWithin // is only around another part
	formJSON   // a value that is not a text
	formHidden // has nothing for a reader: a mark for the cache, what is encrypted
)

// typeForms are the forms of parts by their type, which Anthropic, OpenAI, Mistral, LangChain, LlamaIndex,
// the AI SDK and MCP name.
var typeForms = formsOf(map[form]string{
	formText:     "text input_text output_text",
	formCall:     "tool_use function_call tool_call server_tool_call tool-call executable_code",
	formResult:   "tool_result function_call_output tool-result server_tool_result",
	formThinking: "thinking reasoning",
	formRefusal:  "refusal",
	formFile: `image image_url image_file input_image output_image computer_screenshot audio audio_url input_audio
		output_audio video video_url input_video file input_file container_upload document_url media blob uri
		binary image-url document-url audio-url video-url code_execution_output bash_code_execution_output`,
	formNested: "document search_result resource resource_link logs compaction",
	formHidden: `redacted_thinking cache cache_point item_reference reasoning.encrypted mcp_list_tools step-start
		step-finish`,
})

// memberForms are the forms of parts by the member that has their content: Gemini, Bedrock and Genkit
// name no type.
var memberForms = formsOf(map[form]string{
	formCall: "functionCall function_call toolUse toolRequest executableCode executable_code",
	formResult: `functionResponse function_response toolResult toolResponse codeExecutionResult
		code_execution_result`,
	formThinking: "reasoningContent reasoning",
	formNested:   "document searchResult citationsContent stdout stderr",
	formWithin:   "guardContent",
	formJSON:     "json custom",
	formFile:     "image audio video media image_url file inlineData inline_data fileData file_data",
	formHidden:   "cachePoint cache_point",
})

// formsOf returns the form of each name.
func formsOf(names map[form]string) map[string]form {
	forms := map[string]form{}
	for form, list := range names {
		for name := range strings.FieldsSeq(list) {
			forms[name] = form
		}
	}

	return forms
}

// formOf returns the form of a part, and what has its content: the part, or a member of it.
func formOf(n node) (form, node) {
	kind := n.texts("type", "block_type")
	if f, ok := typeForms[kind]; ok {
		return f, n
	}
	// Tools have separate types.
	switch {
	case strings.HasSuffix(kind, "_tool_use"):
		return formCall, n
	case strings.HasSuffix(kind, "_tool_result"), strings.HasSuffix(kind, "_output"):
		return formResult, n
	// It is within the result of a tool.
	case strings.HasSuffix(kind, "_result"):
		return formNested, n
	// It is of a file that was searched.
	case n.first("filename").exists() && n.at("text").isText():
		return formNested, n
	case n.at("text").isText(), n.at("text").isObject():
		return formText, n
	}

	for name := range n.names {
		f, inner := memberForms[string(name)], n.at(string(name))
		if f == formNested && !inner.isObject() {
			inner = n
		}
		if f != formUnknown && inner.exists() {
			return f, inner.indexed()
		}
	}

	return formUnknown, n
}

// depth is where a part is: the kind of the texts there, and how many parts are around it.
type depth struct {
	kind  PartKind
	level int
}

// levelsMax is how deep parts and their lists are taken apart, which is deeper than any provider nests them:
// each level reads the bytes of those within it again.
const levelsMax = 12

func (d depth) deeper() depth { return depth{d.kind, d.level + 1} }

// content reads a message's content: a text, a part, or a list of them.
func (m *Message) content(n node) { m.part(n, depth{kind: PartText}) }

// part reads one part of a content, or a list of them.
func (m *Message) part(n node, at depth) {
	n = n.indexed()
	switch {
	case n.isText(), at.level > levelsMax:
		m.add(at.kind, n.words())
		return
	case !n.hasMembers():
		for p := range n.each {
			m.part(p, at.deeper())
		}
		return
	}

	form, inner := formOf(n)
	switch form {
	case formHidden:
	case formText:
		// Gemini's.
		if string(n.at("thought").raw) == "true" {
			at.kind = PartThinking
		}
		// The Assistants API has the text in an object, and so has Bedrock's guarded content.
		m.add(at.kind, cmp.Or(n.texts("text"), n.at("text").texts("value", "text")))
	case formCall:
		m.call(inner)
	case formResult:
		m.result(inner, at)
	case formThinking:
		m.thinking(inner, at)
	case formRefusal:
		m.add(PartRefusal, n.texts("refusal"))
	case formFile:
		m.file(n, fileOf(n), at.kind)
	case formNested:
		m.nested(n, inner, at)
	case formWithin:
		m.part(inner, at.deeper())
	case formJSON:
		m.add(at.kind, inner.words())
	default:
		if m.Role == "assistant" {
			// It is beside the words of the model.
			at.kind = PartResult
		}
		if f := fileOf(n); f.held {
			m.file(n, f, at.kind)
		}
		// So that a search finds it.
		m.add(at.kind, n.words())
	}
}

// result reads a tool's answer.
func (m *Message) result(n node, at depth) {
	// Anthropic, Bedrock and Google send results in a user's message, or a function's. One in a message of
	// the model comes from a tool that the provider ran.
	switch m.Role {
	case "user", "function", "":
		m.Role = "tool"
	case "assistant":
		at.kind = PartResult
	}
	// One message may have the results of several calls; it shows the first call's id.
	if m.ToolCallID == "" && m.Role != "assistant" {
		m.ToolCallID = n.texts("tool_use_id", "toolUseId", "call_id", "toolCallId", "tool_call_id", "ref", "id")
	}

	// Gemini has files beside the response.
	m.part(n.at("parts"), at.deeper())
	content := n.first("content", "output", "outputs", "response", "result", "results")
	isTyped := n.at("type").isText() && content.at("type").isText()
	// The AI SDK tells a text from JSON.
	if value := content.at("value"); isTyped && value.exists() {
		content, isTyped = value, false
	}
	// An object is a tool's own JSON, whatever its members are, unless both say what they are.
	if content.isScalar() || content.isObject() && !isTyped {
		m.add(at.kind, content.words())
		return
	}
	m.part(content, at.deeper())
}

// nestedIn are the members in which a nested part has its words, or other parts.
var nestedIn = []string{"stdout", "stderr", "output", "content", "text", "lines", "logs"}

// nested reads a part that has others inside: part, or n as its only member. Its name and its address
// come before them.
func (m *Message) nested(part, n node, at depth) {
	source := n
	if s := n.first("source", "resource"); s.isObject() {
		source = s.indexed()
	}
	// Others have their bytes there.
	hasText := source.texts("type") == "text"
	if !hasText && !source.first(nestedIn...).exists() {
		if f := fileOf(part); f.held {
			m.file(part, f, at.kind)
			m.add(at.kind, n.texts("context"))
			return
		}
	}

	heading := []string{
		n.texts("title", "filename", "name"), n.texts("context"), n.texts("source"), source.texts("url", "uri"),
	}
	heading = slices.DeleteFunc(heading, func(s string) bool { return s == "" })
	before := len(m.Parts)
	m.add(at.kind, strings.Join(heading, "\n"))
	if hasText {
		m.add(at.kind, source.texts("data"))
	}
	for _, name := range nestedIn {
		m.part(source.at(name), at.deeper())
	}
	if len(m.Parts) == before && !n.first("encrypted_content", "content").exists() {
		m.add(at.kind, n.words())
	}
}

// thinking reads the model's thoughts: a block of Anthropic's, Bedrock's or Mistral's, or a
// reasoning item of OpenAI's with its summary.
func (m *Message) thinking(n node, at depth) {
	at = depth{PartThinking, at.level + 1}
	if n.isText() {
		m.part(n, at)
	}
	for _, name := range []string{"thinking", "reasoning", "reasoningText", "summary", "content", "text"} {
		m.part(n.at(name), at)
	}
}

// readItem reads an item of OpenAI's responses: a message, a part that stands alone, or the call of a tool.
func readItem(n node, usual string) Message {
	m := Message{Role: usual}
	kind := n.texts("type")
	tool, isCall := strings.CutSuffix(kind, "_call")
	switch {
	case isCall || kind == "mcp_approval_request":
		m.Role = "assistant"
		m.itemCall(n, tool)
	case n.first("role", "content", "parts").exists() && typeForms[kind] == formUnknown:
		return readMessage(n, usual)
	default:
		n.reading.countMessage()
		m.content(n)
		if kind == "reasoning" {
			m.Role = "assistant"
		}
	}

	return m
}

// itemCall reads a call with what the tool answered, if the provider ran it. Such tools are named by the
// item's type: web_search, file_search.
func (m *Message) itemCall(n node, tool string) {
	call := ToolCall{
		// An item has its own id as well; results refer to the call's.
		ID:        n.texts("call_id", "id"),
		Name:      Clip(cmp.Or(n.texts("name"), tool)),
		Arguments: n.first("arguments", "input", "action", "queries", "code", "operation").compact(),
	}
	m.ToolCalls = append(m.ToolCalls, call)
	// It is a picture.
	if n.at("result").isBytes() {
		m.file(n, fileOf(n), PartResult)
		return
	}
	m.result(n, depth{kind: PartResult})
	m.add(PartResult, n.at("error").words())
}

// words returns a value as JSON, without the bytes of files in it.
func (n node) words() string {
	if n.isText() {
		return n.text()
	}

	raw := []byte(n.compact())
	out := raw[:0]
	for len(raw) > 0 {
		end := 1
		if raw[0] == '"' {
			end = jsonscan.SkipValue(raw, 0)
		}
		if nodeOf(raw[:end]).isBytes() {
			out = append(out, `"..."`...)
		} else {
			out = append(out, raw[:end]...)
		}
		raw = raw[end:]
	}

	return string(out)
}

// wordMax bounds a word of a text; what is longer, without a blank, is the bytes of a file.
const wordMax = 100

var encodedText = regexp.MustCompile(`^[A-Za-z0-9+/_\\-]+={0,2}$`)

// isBytes reports whether a text is bytes in base64, by its beginning, or a data: URL.
func (n node) isBytes() bool {
	text := bytes.Trim(n.raw, `"`)
	isLong := len(text) > wordMax || len(text)%4 == 0 && bytes.HasSuffix(text, []byte("="))
	isEncoded := isLong && encodedText.Match(text[:min(len(text), wordMax)])

	return n.isText() && (isEncoded || bytes.HasPrefix(text, []byte("data:")))
}
