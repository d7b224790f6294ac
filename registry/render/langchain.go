package render

import (
	"cmp"
	"encoding/json"
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

	calls := rawjson.Elements(member("tool_calls"))
	for i, call := range calls {
		if args := rawjson.Member(call, "args"); args != nil {
			calls[i] = rawjson.Encode(wire.Object{
				rawjson.MemberOf("id", rawjson.Member(call, "id")),
				rawjson.MemberOf("function", rawjson.Encode(wire.Object{
					rawjson.MemberOf("name", rawjson.Member(call, "name")),
					rawjson.MemberOf("arguments", rawjson.Quote(string(args))),
				})),
			})
		}
	}
	if calls != nil {
		o = rawjson.Set(o, "tool_calls", rawjson.Array(calls))
	}

	return rawjson.Set(o, "role", rawjson.Quote(role))
}
