package render

import (
	"encoding/json"
	"fmt"
	"strings"

	"promptspool/api/wire"
)

// Fill puts variables into the texts and image urls of a blueprint that Check made, and the messages of a variable in the place
// of the placeholder of its name. What was filled in is data: it is not looked at for variables again. With vars nil the
// blueprint stays as it is.
//
// Nothing is an error here; warnings, each a sentence, say what is not as the publisher meant it: variables that are missing
// render as empty text, a placeholder without messages is dropped, and a text that cannot be rendered is left as it is.
func Fill(blueprint json.RawMessage, vars map[string]json.RawMessage) (filled json.RawMessage, warnings []string) {
	o := object(blueprint)
	if vars == nil || o == nil {
		return blueprint, nil
	}
	f := &filler{rendering: newRendering(vars)}
	if raw, ok := o.Get("messages"); ok {
		o = set(o, "messages", f.messages(elements(raw)))
	} else if raw, ok := o.Get("content"); ok {
		o = set(o, "content", f.content("content", isJinja(o), raw))
	}
	return encode(o), f.told()
}

type filler struct {
	*rendering
	warnings []string
}

func (f *filler) warn(format string, args ...any) {
	if len(f.warnings) < faultsMax {
		f.warnings = append(f.warnings, fmt.Sprintf(format, args...))
	}
}

// told is every warning, the missing variables first.
func (f *filler) told() []string {
	if len(f.missing) == 0 {
		return f.warnings
	}
	names := make([]string, len(f.missing))
	for i, name := range f.missing {
		names[i] = shorten(name)
	}
	return append([]string{"These variables were not given and are empty: " + strings.Join(names, ", ") + "."}, f.warnings...)
}

func (f *filler) messages(list []json.RawMessage) json.RawMessage {
	out := make([]json.RawMessage, 0, len(list))
	for i, raw := range list {
		path := fmt.Sprintf("messages[%d]", i)
		m := object(raw)
		role, _ := m.Get("role")
		if text(role) == "placeholder" {
			name, _ := m.Get("name")
			out = append(out, f.placeholder(path, text(name))...)
			continue
		}
		if content, ok := m.Get("content"); ok {
			m = set(m, "content", f.content(path+".content", isJinja(m), content))
		}
		out = append(out, encode(m))
	}
	return array(out)
}

// placeholder is the messages that the variable holds, in their normal form.
func (f *filler) placeholder(path, name string) []json.RawMessage {
	value, ok := f.vars[name]
	if !ok || isNull(value) {
		f.warn("%s, the placeholder %s, was dropped: no messages were given for it.", path, shorten(name))
		return nil
	}
	c := &checker{data: true}
	list := c.list(name, value, messagesMax)
	size := 0
	for i, m := range list {
		list[i], _ = c.message(fmt.Sprintf("%s[%d]", name, i), m)
		size += len(list[i])
	}
	if len(c.faults) > 0 {
		f.warn("%s, the placeholder %s, was dropped: %s %s.", path, shorten(name), shorten(c.faults[0].Field), c.faults[0].Reason)
		return nil
	}
	if f.output -= size; f.output < 0 {
		f.warn("%s, the placeholder %s, was dropped: the outcome %v.", path, shorten(name), errOutput)
		return nil
	}
	return list
}

func (f *filler) content(path string, jinja bool, raw json.RawMessage) json.RawMessage {
	blocks := elements(raw)
	if blocks == nil {
		return raw
	}
	for i, raw := range blocks {
		at := fmt.Sprintf("%s[%d]", path, i)
		b := object(raw)
		kind, _ := b.Get("type")
		switch text(kind) {
		case "text":
			b = f.member(at, jinja, b, "text")
		case "image_url":
			image, _ := b.Get("image_url")
			b = set(b, "image_url", encode(f.member(at, jinja, object(image), "url")))
		default:
			continue
		}
		blocks[i] = encode(b)
	}
	return array(blocks)
}

// member renders the text in one member.
func (f *filler) member(path string, jinja bool, o wire.Object, name string) wire.Object {
	raw, _ := o.Get(name)
	template := text(raw)
	if strings.IndexByte(template, '{') < 0 && strings.IndexByte(template, '}') < 0 {
		return o
	}
	missing := len(f.missing)
	filled, err := f.fillText(jinja, template)
	if err != nil {
		f.missing = f.missing[:missing]
		f.warn("%s was left as it is: it %v.", path, err)
		return o
	}
	return set(o, name, quoted(filled))
}

func (f *filler) fillText(jinja bool, template string) (string, error) {
	if jinja {
		return "", fmt.Errorf("is in jinja2, which this version does not render")
	}
	format, err := Parse(template)
	if err != nil {
		return "", err
	}
	return f.render(format)
}

func isJinja(o wire.Object) bool {
	format, _ := o.Get("template_format")
	return text(format) == "jinja2"
}
