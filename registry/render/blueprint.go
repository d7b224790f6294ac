// Package render turns a prompt template into the arguments of a model call.
//
// It checks a blueprint when it is published (Check), joins its snippets (Expand), parses
// its texts (Prepare), and then, for each call, fills in variables and writes the
// arguments of a provider's own client (Prepared.Kwargs).
//
// It is pure: the same input gives the same bytes, on a server and on a sidecar, without
// I/O, state or clock. Work, output and nesting are bounded, because both templates and
// variables come from callers. Numbers and unknown members keep their text. It is safe
// for concurrent use; input is never changed, and output may alias it.
package render

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"promptspool/api/wire"
	"promptspool/registry/render/fstring"
	"promptspool/registry/render/language"
	"promptspool/registry/render/prompt"
	"promptspool/registry/render/provider"
	"promptspool/registry/render/rawjson"
)

// Bounds of a blueprint.
const (
	messagesMax = 1000 // messages of a chat
	blocksMax   = 1000 // content blocks of a message or a completion
)

// Check validates a blueprint before it is published, and returns it in its normal form.
//
// In the normal form type is set, a content that was a plain string is a list of one text
// block, and text and image blocks have their type. input_variables, of the whole and of
// each message, are computed from the texts if they were absent or empty. There is no
// whitespace between tokens. Unknown members are kept.
//
// With faults the blueprint is nil. A fault's Field is a path within the blueprint, ""
// for the whole.
func Check(blueprint json.RawMessage) (json.RawMessage, []wire.FieldError) {
	c := &checker{}
	o, ok := c.object("", blueprint)
	if !ok {
		return nil, c.faults
	}
	o = c.langchain(o)

	switch kind := c.kind(o); kind {
	case "chat":
		o = c.chat(rawjson.Set(o, "type", rawjson.Quote(kind)))
	case "completion":
		o = c.completion(rawjson.Set(o, "type", rawjson.Quote(kind)))
	}
	if len(c.faults) > 0 {
		return nil, c.faults
	}

	return rawjson.Compact(rawjson.Encode(o)), nil
}

// langchain converts a prompt in the form that LangChain serialises, which older clients
// publish, to a completion:
//
//	{"_type":"prompt","template":"...","input_variables":[...],"template_format":"f-string"}
func (c *checker) langchain(o wire.Object) wire.Object {
	kind := c.text("_type", o, "_type", false)
	if kind != "" && kind != "prompt" {
		c.fault("_type", "must be prompt; publish a chat as {\"type\": \"chat\", \"messages\": [...]}")
	}
	if o.Has("type") || o.Has("messages") || o.Has("content") || kind == "" && !o.Has("template") {
		return o
	}

	source := c.text("template", o, "template", true)
	block := rawjson.Form(`{"type":"text","text":$}`, source)
	o = rawjson.Set(rawjson.Without(o, "template"), "type", rawjson.Quote("completion"))

	return rawjson.Set(o, "content", rawjson.Array([]json.RawMessage{block}))
}

// kind returns the blueprint's type: what it says, or else what its members show.
func (c *checker) kind(o wire.Object) string {
	switch kind := c.text("type", o, "type", false); {
	case kind == "chat", kind == "completion":
		return kind
	case kind != "":
		c.fault("type", "must be chat or completion")
	case o.Has("messages"):
		return "chat"
	case o.Has("content"):
		return "completion"
	case len(c.faults) == 0:
		c.fault("type", "is missing; a chat has messages, a completion has content")
	}

	return ""
}

func (c *checker) chat(o wire.Object) wire.Object {
	raw, ok := o.Get("messages")
	if !ok {
		c.fault("messages", "is missing")
		return o
	}

	var all language.Names
	messages := c.list("messages", raw, messagesMax)
	for i, m := range messages {
		var used []string
		messages[i], used = c.message(fmt.Sprintf("messages[%d]", i), m)
		all.Add(used...)
	}
	c.templateFormat("template_format", o)
	c.tools(o)
	o = rawjson.Set(o, "messages", rawjson.Array(messages))

	return c.inputVariables("", o, all.List)
}

func (c *checker) completion(o wire.Object) wire.Object {
	raw, ok := o.Get("content")
	if !ok {
		c.fault("content", "is missing")
		return o
	}

	c.templateFormat("template_format", o)
	content, used := c.content("content", prompt.FormatOf(o), raw)

	return c.inputVariables("", rawjson.Set(o, "content", content), used)
}

// tools checks the form of what the model may call.
func (c *checker) tools(o wire.Object) {
	for _, name := range []string{"tools", "functions"} {
		raw, ok := o.Get(name)
		if !ok {
			continue
		}
		for i, e := range c.list(name, raw, blocksMax) {
			c.tool(fmt.Sprintf("%s[%d]", name, i), e, name == "functions")
		}
	}

	for _, name := range []string{"tool_choice", "function_call"} {
		if raw, ok := o.Get(name); ok && raw[0] != '"' && raw[0] != '{' {
			c.fault(name, "must be a string or an object")
		}
	}
}

func (c *checker) tool(path string, raw json.RawMessage, isFunction bool) {
	tool, ok := c.object(path, raw)
	if !ok {
		return
	}

	// A tool of the type function has its name one level deeper.
	kind := c.text(path+".type", tool, "type", false)
	if !isFunction && (kind == "" || kind == "function") {
		path += ".function"
		tool, ok = c.object(path, rawjson.Of(tool, "function"))
		if !ok {
			return
		}
	}
	c.text(path+".name", tool, "name", true)
}

func (c *checker) templateFormat(path string, o wire.Object) {
	if c.isData {
		return
	}

	switch format := c.text(path, o, "template_format", false); format {
	case "", "f-string", "jinja2", "none":
	default:
		c.fault(path, "must be f-string, jinja2 or none")
	}
}

// inputVariables sets input_variables to what the texts use, unless the publisher listed
// some.
func (c *checker) inputVariables(path string, o wire.Object, used []string) wire.Object {
	if c.isData {
		return o
	}
	// A list that the publisher wrote may hold more than the texts use, and stays.
	path = join(path, "input_variables")
	if raw, ok := o.Get("input_variables"); ok {
		listed := c.list(path, raw, language.VariablesMax)
		for i, e := range listed {
			if e[0] != '"' {
				c.fault(fmt.Sprintf("%s[%d]", path, i), "must be a string")
			}
		}
		if len(listed) > 0 {
			return o
		}
	}

	// Such a template could be published and never filled in.
	if len(used) > language.VariablesMax {
		c.fault(path, "would be more than %d; a fetch cannot give so many", language.VariablesMax)
		return o
	}

	return rawjson.Set(o, "input_variables", rawjson.ArrayOf(used, rawjson.Quote))
}

// findingsMax bounds the findings of one blueprint.
const findingsMax = language.FaultsMax

// Findings reports what of a blueprint cannot be rendered. These are texts that a fetch
// would leave as they are, and what the metadata's provider has no place for.
//
// A text with snippets is judged as a whole; what is wrong with a snippet only is reported at
// the beginning of the text.
func (x Expanded) Findings(metadata json.RawMessage) []wire.Finding {
	o, err := wire.ParseObject(x.Blueprint)
	if err != nil {
		return []wire.Finding{{Line: 1, Column: 1, Message: "is not a JSON object"}}
	}

	p := prompt.Parse(o)
	var findings []wire.Finding
	for b := range p.Blocks {
		if b.Variable == "" && b.Fault != nil && len(findings) < findingsMax {
			findings = append(findings, x.textFinding(b))
		}
	}
	// A prompt whose texts are broken says little about what the provider lacks.
	if len(findings) > 0 {
		return findings
	}

	return providerFindings(p, provider.ParseModel(metadata))
}

// Hints reports what can be rendered, but is hardly meant so. These are names in doubled braces in
// the format f-string, and variables that are given and used nowhere.
func (p *Prepared) Hints(given iter.Seq[string]) []wire.Finding {
	// Mostly none: this is done for each fetch.
	var unused []wire.Finding
	for name := range given {
		if p.used != nil && !p.used[name] {
			message := "has " + language.Shorten(name) + ", which is used nowhere"
			unused = append(unused, findingOf("input_variables", message))
		}
	}
	slices.SortFunc(unused, func(a, b wire.Finding) int { return strings.Compare(a.Message, b.Message) })

	return append(slices.Clip(p.doubled), unused[:min(len(unused), findingsMax)]...)
}

// Hints is Hints of a Prepared, with the variables that the publisher lists.
func (x Expanded) Hints() []wire.Finding {
	p, err := Prepare(x.Blueprint, nil)
	if err != nil {
		return nil
	}

	var listed []string
	for _, e := range rawjson.Elements(rawjson.Member(x.Blueprint, "input_variables")) {
		listed = append(listed, rawjson.Text(e))
	}

	return p.Hints(slices.Values(listed))
}

// prepareHints finds the variables that are used, and the names in doubled braces.
func (p *Prepared) prepareHints() {
	used := map[string]bool{}
	for b := range p.prompt.Blocks {
		if b.Fault != nil {
			// A text that cannot be parsed may use any variable.
			return
		}
		used[b.Variable] = true
		if b.Template != nil {
			for _, name := range b.Template.Variables() {
				used[name] = true
			}
		}

		f, isFString := b.Template.(*fstring.Format)
		if isFString && f.Doubled() != "" && len(p.doubled) < findingsMax {
			p.doubled = append(p.doubled, findingOf(textPath(b), fmt.Sprintf(
				"has {{%[1]s}}, which renders as {%[1]s}; a variable of an f-string is {%[1]s}",
				language.Shorten(f.Doubled()))))
		}
	}
	for _, m := range p.prompt.Messages {
		used[m.Name] = used[m.Name] || m.Role == "placeholder"
	}
	p.used = used
}

// findingOf returns a finding without a place in its text.
func findingOf(path, message string) wire.Finding {
	return wire.Finding{Path: path, Line: 1, Column: 1, Message: message}
}

// Unresolved turns an error without a place in a text into findings. Such an error comes
// from Expand: a snippet that no longer exists, a cycle.
func Unresolved(err error) (findings []wire.Finding) {
	for _, f := range wire.AsError(err).Fields {
		findings = append(findings, findingOf(prompt.Place(f.Field), f.Reason))
	}
	return findings
}

// textFinding reports why the text of a block cannot be rendered.
func (x Expanded) textFinding(b *prompt.Block) wire.Finding {
	f := findingOf(textPath(b), b.Fault.Error())
	var fault *language.Error
	if errors.As(b.Fault, &fault) {
		f.Line, f.Column, f.Message = max(fault.Line, 1), max(fault.Column, 1), fault.Message
	}

	// The fault's place is in the expanded text; people look for it in what they wrote.
	written, ok := x.written[prompt.Place(b.At)]
	if !ok || fault == nil {
		return f
	}
	_, err := prompt.ParseTemplate(written.format, written.source)
	if own := (*language.Error)(nil); errors.As(err, &own) {
		f.Line, f.Column, f.Message = own.Line, own.Column, own.Message
	} else {
		f.Line, f.Column, f.Message = 1, 1, "refers to snippets, with which the text "+fault.Message
	}

	return f
}

// textPath returns where the text of a block is in the blueprint.
func textPath(b *prompt.Block) string {
	if b.Kind == "text" {
		return prompt.Place(b.At) + ".text"
	}

	return prompt.Place(b.At) + "." + b.Kind + ".url"
}

// providerFindings reports what the provider has no place for, whatever the variables
// are. If variables may bring messages or files, nothing is known before the call.
func providerFindings(p *prompt.Prompt, m provider.Model) []wire.Finding {
	if !provider.Known(m.Provider) {
		return nil
	}
	for b := range p.Blocks {
		if b.Variable != "" || b.Kind != "text" && b.Template != nil {
			return nil
		}
	}
	isPlaceholder := func(m prompt.Message) bool { return m.Role == "placeholder" }
	if slices.ContainsFunc(p.Messages, isPlaceholder) {
		return nil
	}

	_, _, err := provider.Kwargs(m.Provider, m, p, "", nil)
	if err == nil {
		return nil
	}

	return Unresolved(err)
}

// checker collects what is wrong with a document.
type checker struct {
	faults []wire.FieldError
	isData bool // the messages fill a placeholder: braces in them mean nothing
}

func (c *checker) fault(path, format string, args ...any) {
	if len(c.faults) < language.FaultsMax {
		c.faults = append(c.faults, wire.FieldError{Field: path, Reason: fmt.Sprintf(format, args...)})
	}
}

// object reads the object at path.
func (c *checker) object(path string, raw json.RawMessage) (wire.Object, bool) {
	o, err := wire.ParseObject(raw)
	if err == nil {
		return o, true
	}

	e := wire.AsError(err)
	for _, f := range e.Fields {
		c.fault(join(path, f.Field), "%s", f.Reason)
	}
	if len(e.Fields) == 0 {
		c.fault(path, "must be a JSON object")
	}

	return nil, false
}

// list reads the array at path.
func (c *checker) list(path string, raw json.RawMessage, most int) []json.RawMessage {
	if len(raw) == 0 || raw[0] != '[' {
		c.fault(path, "must be an array")
		return nil
	}
	list := rawjson.Elements(raw)
	// Its entries are not looked at: each could add another fault.
	if len(list) > most {
		c.fault(path, "has more than %d entries", most)
		return nil
	}

	return list
}

// text reads a member that must be a string and, if it is required, must not be empty.
func (c *checker) text(path string, o wire.Object, name string, required bool) string {
	v, ok := o.Get(name)
	if ok && v[0] != '"' {
		c.fault(path, "must be a string")
		return ""
	}

	s := rawjson.Text(v)
	if required && s == "" {
		c.fault(path, "is missing")
	}

	return s
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

var roles = []string{"system", "user", "assistant", "function", "tool", "developer", "placeholder"}

// message checks one message, and returns its normal form and the variables of its texts.
func (c *checker) message(path string, raw json.RawMessage) (json.RawMessage, []string) {
	o, ok := c.object(path, raw)
	if !ok {
		return raw, nil
	}
	if c.isData {
		o = fromLangChain(o)
	}
	role := c.text(path+".role", o, "role", true)
	// A placeholder within a placeholder would need a second filling.
	if role != "" && !slices.Contains(roles, role) || c.isData && role == "placeholder" {
		c.fault(path+".role", "must be one of %s", strings.Join(roles, ", "))
		return raw, nil
	}

	c.templateFormat(path+".template_format", o)
	c.text(path+".name", o, "name", role == "function")
	c.calls(path, o)
	if role == "tool" {
		c.text(path+".tool_call_id", o, "tool_call_id", true)
	}

	var used language.Names
	// Its name is the variable that holds the messages.
	if role == "placeholder" {
		used.Add(c.text(path+".name", o, "name", true))
	}
	if content, ok := o.Get("content"); ok {
		content, inContent := c.content(path+".content", prompt.FormatOf(o), content)
		used.Add(inContent...)
		o = rawjson.Set(o, "content", content)
	} else if role != "" && role != "assistant" && role != "function" && role != "placeholder" {
		c.fault(path+".content", "is missing")
	}

	return rawjson.Encode(c.inputVariables(path, o, used.List)), used.List
}

// calls checks the calls in an assistant's message.
func (c *checker) calls(path string, o wire.Object) {
	if raw, ok := o.Get("function_call"); ok {
		c.call(path+".function_call", raw)
	}

	raw, ok := o.Get("tool_calls")
	if !ok {
		return
	}
	for i, e := range c.list(path+".tool_calls", raw, blocksMax) {
		at := fmt.Sprintf("%s.tool_calls[%d]", path, i)
		if call, ok := c.object(at, e); ok {
			c.text(at+".id", call, "id", true)
			c.call(at+".function", rawjson.Of(call, "function"))
		}
	}
}

func (c *checker) call(path string, raw json.RawMessage) {
	call, ok := c.object(path, raw)
	if !ok {
		return
	}

	c.text(path+".name", call, "name", true)
	if arguments, ok := call.Get("arguments"); !ok || arguments[0] != '"' {
		c.fault(path+".arguments", "must be a string that holds JSON")
	}
}

// content checks a list of blocks. A plain string becomes a list of one text block.
func (c *checker) content(path, format string, raw json.RawMessage) (json.RawMessage, []string) {
	if raw[0] == '"' {
		raw = rawjson.Array([]json.RawMessage{rawjson.Encode(textBlock(raw))})
	}
	if raw[0] != '[' {
		c.fault(path, "must be a string or an array of blocks")
		return raw, nil
	}

	var used language.Names
	blocks := c.list(path, raw, blocksMax)
	for i, b := range blocks {
		at := fmt.Sprintf("%s[%d]", path, i)
		o, ok := c.object(at, b)
		if !ok {
			continue
		}
		kind := c.blockType(at, o)
		if kind != "" {
			o = rawjson.Set(o, "type", rawjson.Quote(kind))
		}
		used.Add(c.block(at, kind, format, o)...)
		blocks[i] = rawjson.Encode(o)
	}

	return rawjson.Array(blocks), used.List
}

func textBlock(quotedText json.RawMessage) wire.Object {
	return wire.Object{
		rawjson.MemberOf("type", rawjson.Quote("text")),
		rawjson.MemberOf("text", quotedText),
	}
}

// blockTypes lists the types of content blocks, in the words of the hosted service's
// schema, with the members that must be strings.
var blockTypes = map[string]string{
	"text":           "text",
	"image_url":      "",
	"media":          "",
	"media_variable": "name",
	"thinking":       "thinking",
	"code":           "code",
	"output_media":   "url",

	"server_tool_use":                        "id name",
	"web_search_tool_result":                 "tool_use_id",
	"code_execution_result":                  "output",
	"bash_code_execution_tool_result":        "tool_use_id",
	"text_editor_code_execution_tool_result": "tool_use_id",

	"mcp_list_tools":          "",
	"mcp_call":                "",
	"mcp_approval_request":    "",
	"mcp_approval_response":   "",
	"shell_call":              "",
	"shell_call_output":       "",
	"apply_patch_call":        "",
	"apply_patch_call_output": "",
}

// blockType returns what a block says it is, or else what its members show. Unknown types
// are kept as they are: no provider takes them, and each says so.
func (c *checker) blockType(path string, o wire.Object) string {
	kind := c.text(path+".type", o, "type", false)
	switch {
	case kind != "":
	case o.Has("text"):
		kind = "text"
	case o.Has("image_url"):
		kind = "image_url"
	case o.Has("media"):
		kind = "media"
	default:
		c.fault(path+".type", "is missing")
	}

	return kind
}

// block checks the members of one block and returns its variables.
func (c *checker) block(path, kind, format string, o wire.Object) []string {
	for _, name := range strings.Fields(blockTypes[kind]) {
		if v, ok := o.Get(name); !ok || v[0] != '"' {
			c.fault(path+"."+name, "must be a string")
		}
	}

	var source string
	var used language.Names
	switch kind {
	case "text":
		source = c.text(path+".text", o, "text", false)
	case "image_url", "media":
		inner, ok := c.object(path+"."+kind, rawjson.Of(o, kind))
		if !ok {
			return nil
		}
		used.Add(c.text(path+".image_variable", o, "image_variable", false))
		source = c.text(path+"."+kind+".url", inner, "url", len(used.List) == 0)
	case "media_variable":
		used.Add(c.text(path+".name", o, "name", true))
	}
	if c.isData {
		return nil
	}
	used.Add(variables(format, source)...)

	return used.List
}

// variables returns those of a text. A text that does not parse has none, because it is
// left as it is.
func variables(format, source string) []string {
	t, err := prompt.ParseTemplate(format, source)
	if t == nil || err != nil {
		return nil
	}

	return t.Variables()
}

// langchainRoles are the roles of LangChain's messages, by what it calls them.
var langchainRoles = map[string]string{
	"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "function",
}

// fromLangChain converts a message in the forms in which LangChain writes it, and returns any other
// as it is:
//
//	{"type":"human","content":"..."}
//	{"type":"human","data":{"content":"..."}}
//	{"lc":1,"type":"constructor","id":["langchain_core","messages","HumanMessage"],"kwargs":{"content":"..."}}
func fromLangChain(o wire.Object) wire.Object {
	member := func(name string) json.RawMessage { return rawjson.Of(o, name) }
	kind := cmp.Or(rawjson.Text(member("role")), rawjson.Text(member("type")))
	if id := rawjson.Elements(member("id")); len(id) > 0 {
		kind = rawjson.Text(id[len(id)-1])
	}
	kind = strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(kind), "chunk"), "message")
	role := langchainRoles[kind]
	if role == "" {
		return o
	}
	for _, name := range []string{"data", "kwargs"} {
		if inner := rawjson.Object(member(name)); inner != nil {
			o = inner
		}
	}

	// Older versions have calls as OpenAI writes them.
	older := member("additional_kwargs")
	if call := rawjson.Member(older, "function_call"); call != nil {
		o = rawjson.Set(o, "function_call", call)
	}
	calls := rawjson.Elements(member("tool_calls"))
	if len(calls) == 0 {
		calls = rawjson.Elements(rawjson.Member(older, "tool_calls"))
	}
	for i := range calls {
		call := rawjson.Object(calls[i])
		if args, ok := call.Get("args"); ok {
			function := rawjson.Form(`{"name":$,"arguments":$}`, rawjson.Of(call, "name"), string(args))
			calls[i] = rawjson.Encode(rawjson.Set(call, "function", function))
		}
	}
	if calls == nil {
		return rawjson.Set(o, "role", rawjson.Quote(role))
	}

	// Claude's content has each call once more.
	if content := rawjson.Elements(member("content")); content != nil {
		isCall := func(b json.RawMessage) bool { return rawjson.Text(rawjson.Member(b, "type")) == "tool_use" }
		o = rawjson.Set(o, "content", rawjson.Array(slices.DeleteFunc(content, isCall)))
	}
	o = rawjson.Set(o, "tool_calls", rawjson.Array(calls))

	return rawjson.Set(o, "role", rawjson.Quote(role))
}
