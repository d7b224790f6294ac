package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// filler makes a prompt without variables of one with them.
type filler struct {
	rendering
	warnings []string
}

// fill puts variables into the texts, and into image and media urls, of a prompt; the messages of a variable in the place of the
// placeholder of its name; and the images of a variable in the place of the block that names it. What was filled in is data: it
// is not looked at for variables again. With vars nil the prompt stays as it is.
//
// Nothing is an error here; warnings, each a sentence, say what is not as the publisher meant it: variables that are missing
// render as empty text, a placeholder without messages is dropped, and a text that cannot be rendered is left as it is. The prompt is nil
// if done was closed before the end.
func fill(p *prompt, vars map[string]json.RawMessage, done <-chan struct{}) (*prompt, []string) {
	if vars == nil {
		return p, nil
	}
	f := filler{rendering: newRendering(vars)}
	f.done = done
	out := *p
	out.content = f.blocks(p.content)
	if p.chat {
		out.messages = make([]message, 0, len(p.messages))
		for i := range p.messages {
			m := p.messages[i]
			if m.role == "placeholder" {
				out.messages = append(out.messages, f.placeholder(m.at, m.name)...)
				continue
			}
			m.content = f.blocks(m.content)
			out.messages = append(out.messages, m)
		}
	}
	if f.ended {
		return nil, nil
	}
	return &out, f.told()
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

// place is where something stands within the blueprint.
func place(at string) string { return strings.TrimPrefix(at, "prompt_template.") }

// blocks are those of a message, filled; the same ones where there is nothing to fill.
func (f *filler) blocks(list []block) []block {
	var out []block
	for i := range list {
		b := &list[i]
		if b.template == nil && b.fault == nil && b.variable == "" {
			if out != nil {
				out = append(out, *b)
			}
			continue
		}
		if out == nil {
			out = append(make([]block, 0, len(list)), list[:i]...)
		}
		switch {
		case b.variable != "":
			out = append(out, f.images(b)...)
		case b.fault != nil:
			f.warn("%s was left as it is: it %v.", place(b.at), b.fault)
			out = append(out, *b)
		default:
			out = append(out, f.block(b))
		}
	}
	if out == nil {
		return list
	}
	return out
}

// block renders the text of one.
func (f *filler) block(b *block) block {
	filled := *b
	missing := len(f.missing)
	f.text = slices.Grow(f.text[:0], len(b.text)+len(b.text)/4+256)
	text, err := b.template.appendTo(f.text, &f.rendering)
	if err != nil {
		f.missing = f.missing[:missing]
		f.warn("%s was left as it is: it %v.", place(b.at), err)
		return filled
	}
	f.text = text
	filled.text, filled.template = string(text), nil
	return filled
}

// placeholder is the messages that the variable holds.
func (f *filler) placeholder(at, name string) []message {
	value, ok := f.vars[name]
	if !ok || isNull(value) {
		f.warn("%s, the placeholder %s, was dropped: no messages were given for it.", place(at), shorten(name))
		return nil
	}
	if f.output -= len(value); f.output < 0 {
		f.warn("%s, the placeholder %s, was dropped: the outcome %v.", place(at), shorten(name), errOutput)
		return nil
	}
	c := &checker{data: true}
	list := c.list(name, value, messagesMax)
	messages := make([]message, 0, len(list))
	for i, raw := range list {
		normal, _ := c.message(fmt.Sprintf("%s[%d]", name, i), raw)
		if len(c.faults) > 0 {
			f.warn("%s, the placeholder %s, was dropped: %s %s.", place(at), shorten(name), shorten(c.faults[0].Field), c.faults[0].Reason)
			return nil
		}
		messages = append(messages, parseMessage(fmt.Sprintf("input_variables.%s[%d]", shorten(name), i), object(normal), true))
	}
	if len(c.faults) > 0 {
		f.warn("%s, the placeholder %s, was dropped: %s %s.", place(at), shorten(name), shorten(c.faults[0].Field), c.faults[0].Reason)
		return nil
	}
	return messages
}

// images are the blocks that stand for a variable that holds images: a url, or a list of urls or of objects with one. A
// media_variable takes files of other types as well.
func (f *filler) images(b *block) []block {
	value, ok := f.vars[b.variable]
	if !ok || isNull(value) {
		f.miss(b.variable)
		return nil
	}
	if f.output -= len(value); f.output < 0 {
		f.warn("%s was dropped: the outcome %v.", place(b.at), errOutput)
		return nil
	}
	list := []json.RawMessage{value}
	if value[0] == '[' {
		list = elements(value)
	}
	if len(list) > blocksMax {
		f.warn("%s was dropped: the variable %s has more than %d images.", place(b.at), shorten(b.variable), blocksMax)
		return nil
	}
	blocks := make([]block, 0, len(list))
	for i, e := range list {
		image, ok := imageOf(b, e)
		if !ok {
			f.warn("%s was dropped: the variable %s must hold the url of an image, or a list of them.", place(b.at), shorten(b.variable))
			return nil
		}
		image.at = fmt.Sprintf("input_variables.%s[%d]", shorten(b.variable), i)
		blocks = append(blocks, image)
	}
	return blocks
}

// imageOf makes a block of one value of an image_variable or media_variable.
func imageOf(b *block, value json.RawMessage) (block, bool) {
	out := block{kind: "image_url", text: text(value)}
	if b.kind == "media_variable" {
		out.kind = "media"
	}
	if value[0] == '{' {
		o := object(value)
		for _, inner := range []string{"image_url", "media"} {
			if v, ok := o.Get(inner); ok {
				out.kind, value = inner, v
				break
			}
		}
		if out.text = text(value); out.text == "" {
			out.text = text(member(value, "url"))
		}
		if value[0] == '{' {
			out.raw = append(out.raw, memberOf(out.kind, value))
		}
	} else if raw, ok := b.raw.Get(out.kind); ok { // detail
		out.raw = append(out.raw, memberOf(out.kind, raw))
	}
	return out, out.text != ""
}
