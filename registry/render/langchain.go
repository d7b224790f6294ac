package render

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"promptspool/api/wire"
	"promptspool/registry/render/rawjson"
)

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
