package render

import (
	"encoding/json"
	"fmt"
	"slices"

	"promptspool/api/wire"
)

var roles = []string{"system", "user", "assistant", "function", "tool", "developer", "placeholder"}

// message judges one message and returns its normal form and the variables of its texts.
func (c *checker) message(path string, raw json.RawMessage) (json.RawMessage, []string) {
	o, ok := c.object(path, raw)
	if !ok {
		return raw, nil
	}
	role := c.text(path+".role", o, "role", true)
	if role != "" && !slices.Contains(roles, role) || c.data && role == "placeholder" {
		c.fault(path+".role", "must be one of system, user, assistant, function, tool, developer, placeholder")
		return raw, nil
	}
	c.templateFormat(path+".template_format", o)
	c.text(path+".name", o, "name", role == "function")
	c.calls(path, o)
	if role == "tool" {
		c.text(path+".tool_call_id", o, "tool_call_id", true)
	}
	var used names
	if role == "placeholder" { // its name is the variable that holds the messages
		used.add(c.text(path+".name", o, "name", true))
	}
	if content, ok := o.Get("content"); ok {
		content, inContent := c.content(path+".content", content)
		used.add(inContent...)
		o = set(o, "content", content)
	} else if role != "" && role != "assistant" && role != "function" && role != "placeholder" {
		c.fault(path+".content", "is missing")
	}
	return encode(c.inputVariables(path, o, used.list)), used.list
}

// calls checks what an assistant's message says it called.
func (c *checker) calls(path string, o wire.Object) {
	if raw, ok := o.Get("function_call"); ok {
		c.called(path+".function_call", raw)
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
			c.called(at+".function", function)
		}
	}
}

func (c *checker) called(path string, raw json.RawMessage) {
	if call, ok := c.object(path, raw); ok {
		c.text(path+".name", call, "name", true)
		if arguments, ok := call.Get("arguments"); !ok || arguments[0] != '"' {
			c.fault(path+".arguments", "must be a string that holds JSON")
		}
	}
}

// content judges a list of blocks, or a plain string, which it makes a list of one text block.
func (c *checker) content(path string, raw json.RawMessage) (json.RawMessage, []string) {
	if raw[0] == '"' {
		raw = array([]json.RawMessage{encode(textBlock(raw))})
	}
	if raw[0] != '[' {
		c.fault(path, "must be a string or an array of blocks")
		return raw, nil
	}
	var used names
	blocks := c.list(path, raw, blocksMax)
	for i, b := range blocks {
		at := fmt.Sprintf("%s[%d]", path, i)
		o, ok := c.object(at, b)
		if !ok {
			continue
		}
		kind := c.blockType(at, o)
		if kind == "text" || kind == "image_url" {
			o = set(o, "type", quoted(kind))
			template := c.template(at, kind, o)
			if !c.data {
				used.add(variables(template)...)
			}
		}
		blocks[i] = encode(o)
	}
	return array(blocks), used.list
}

func textBlock(quotedText json.RawMessage) wire.Object {
	return wire.Object{{Name: "type", Value: quoted("text")}, {Name: "text", Value: quotedText}}
}

// blockType is what a block says it is, else what its members show. Types other than text and image_url are kept as they are.
func (c *checker) blockType(path string, o wire.Object) string {
	kind := c.text(path+".type", o, "type", false)
	switch {
	case kind != "":
	case o.Has("text"):
		kind = "text"
	case o.Has("image_url"):
		kind = "image_url"
	default:
		c.fault(path+".type", "is missing")
	}
	return kind
}

// template is the text in a block that may hold variables.
func (c *checker) template(path, kind string, o wire.Object) string {
	if kind == "text" {
		if v, ok := o.Get("text"); !ok || v[0] != '"' {
			c.fault(path+".text", "must be a string")
			return ""
		}
		return c.text(path+".text", o, "text", false)
	}
	v, _ := o.Get("image_url")
	image, ok := c.object(path+".image_url", v)
	if !ok {
		return ""
	}
	return c.text(path+".image_url.url", image, "url", true)
}

// variables are those of a text; none if it does not parse, for then it is left as it is.
func variables(template string) []string {
	f, err := Parse(template)
	if err != nil {
		return nil
	}
	return f.Variables()
}
