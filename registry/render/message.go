package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"promptspool/api/wire"
	"promptspool/registry/render/language"
	"promptspool/registry/render/prompt"
	"promptspool/registry/render/rawjson"
)

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
			function, _ := call.Get("function")
			c.call(at+".function", function)
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
		v, _ := o.Get(kind)
		inner, ok := c.object(path+"."+kind, v)
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
	member := func(name string) json.RawMessage { v, _ := o.Get(name); return v }
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
			name, _ := call.Get("name")
			function := wire.Object{
				rawjson.MemberOf("name", name),
				rawjson.MemberOf("arguments", rawjson.Quote(string(args))),
			}
			calls[i] = rawjson.Encode(rawjson.Set(call, "function", rawjson.Encode(function)))
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
