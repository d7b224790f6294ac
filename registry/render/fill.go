package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"promptspool/registry/render/language"
	"promptspool/registry/render/prompt"
	"promptspool/registry/render/rawjson"
)

// filler makes a prompt without variables of one with them.
type filler struct {
	language.Rendering
	text     []byte // what is being written; used again for the next text
	warnings []string
}

// fill puts variables into the texts, and into image and media urls, of a prompt; the messages of a variable in the place of the
// placeholder of its name; and the images of a variable in the place of the block that names it. What was filled in is data: it
// is not looked at for variables again. With vars nil the prompt stays as it is.
//
// Nothing is an error here; warnings, each a sentence, say what is not as the publisher meant it: variables that are missing
// render as empty text, a placeholder without messages is dropped, and a text that cannot be rendered is left as it is. The prompt is nil
// if done was closed before the end.
func fill(p *prompt.Prompt, vars map[string]json.RawMessage, done <-chan struct{}) (*prompt.Prompt, []string) {
	if vars == nil {
		return p, nil
	}
	f := filler{Rendering: language.NewRendering(vars)}
	f.Done = done
	out := *p
	out.Content = f.blocks(p.Content)
	if p.Chat {
		out.Messages = make([]prompt.Message, 0, len(p.Messages))
		for i := range p.Messages {
			m := p.Messages[i]
			if m.Role == "placeholder" {
				out.Messages = append(out.Messages, f.placeholder(m.At, m.Name)...)
				continue
			}
			m.Content = f.blocks(m.Content)
			out.Messages = append(out.Messages, m)
		}
	}
	if f.Ended {
		return nil, nil
	}
	return &out, f.told()
}

func (f *filler) warn(format string, args ...any) {
	if len(f.warnings) < language.FaultsMax {
		f.warnings = append(f.warnings, fmt.Sprintf(format, args...))
	}
}

// told is every warning, the missing variables first.
func (f *filler) told() []string {
	if len(f.Missing) == 0 {
		return f.warnings
	}
	names := make([]string, len(f.Missing))
	for i, name := range f.Missing {
		names[i] = language.Shorten(name)
	}
	return append([]string{"These variables were not given and are empty: " + strings.Join(names, ", ") + "."}, f.warnings...)
}

// blocks are those of a message, filled; the same ones where there is nothing to fill.
func (f *filler) blocks(list []prompt.Block) []prompt.Block {
	var out []prompt.Block
	for i := range list {
		b := &list[i]
		if b.Template == nil && b.Fault == nil && b.Variable == "" {
			if out != nil {
				out = append(out, *b)
			}
			continue
		}
		if out == nil {
			out = append(make([]prompt.Block, 0, len(list)), list[:i]...)
		}
		switch {
		case b.Variable != "":
			out = append(out, f.images(b)...)
		case b.Fault != nil:
			f.warn("%s was left as it is: it %v.", prompt.Place(b.At), b.Fault)
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
func (f *filler) block(b *prompt.Block) prompt.Block {
	filled := *b
	missing := len(f.Missing)
	f.text = slices.Grow(f.text[:0], len(b.Text)+len(b.Text)/4+256)
	text, err := b.Template.AppendTo(f.text, &f.Rendering)
	if err != nil {
		f.Missing = f.Missing[:missing]
		f.warn("%s was left as it is: it %v.", prompt.Place(b.At), err)
		return filled
	}
	f.text = text
	filled.Text, filled.Template = string(text), nil
	return filled
}

// placeholder is the messages that the variable holds.
func (f *filler) placeholder(at, name string) []prompt.Message {
	value, ok := f.Variables[name]
	if !ok || rawjson.IsNull(value) {
		f.warn("%s, the placeholder %s, was dropped: no messages were given for it.", prompt.Place(at), language.Shorten(name))
		return nil
	}
	if f.Output -= len(value); f.Output < 0 {
		f.warn("%s, the placeholder %s, was dropped: the outcome %v.", prompt.Place(at), language.Shorten(name), language.ErrOutput)
		return nil
	}
	c := &checker{data: true}
	list := c.list(name, value, messagesMax)
	messages := make([]prompt.Message, 0, len(list))
	for i, raw := range list {
		normal, _ := c.message(fmt.Sprintf("%s[%d]", name, i), raw)
		if len(c.faults) > 0 {
			f.warn("%s, the placeholder %s, was dropped: %s %s.", prompt.Place(at), language.Shorten(name), language.Shorten(c.faults[0].Field), c.faults[0].Reason)
			return nil
		}
		messages = append(messages, prompt.ParseMessage(fmt.Sprintf("input_variables.%s[%d]", language.Shorten(name), i), rawjson.Object(normal), true))
	}
	if len(c.faults) > 0 {
		f.warn("%s, the placeholder %s, was dropped: %s %s.", prompt.Place(at), language.Shorten(name), language.Shorten(c.faults[0].Field), c.faults[0].Reason)
		return nil
	}
	return messages
}

// images are the blocks that stand for a variable that holds images: a url, or a list of urls or of objects with one. A
// media_variable takes files of other types as well.
func (f *filler) images(b *prompt.Block) []prompt.Block {
	value, ok := f.Variables[b.Variable]
	if !ok || rawjson.IsNull(value) {
		f.Miss(b.Variable)
		return nil
	}
	if f.Output -= len(value); f.Output < 0 {
		f.warn("%s was dropped: the outcome %v.", prompt.Place(b.At), language.ErrOutput)
		return nil
	}
	list := []json.RawMessage{value}
	if value[0] == '[' {
		list = rawjson.Elements(value)
	}
	if len(list) > blocksMax {
		f.warn("%s was dropped: the variable %s has more than %d images.", prompt.Place(b.At), language.Shorten(b.Variable), blocksMax)
		return nil
	}
	blocks := make([]prompt.Block, 0, len(list))
	for i, e := range list {
		image, ok := imageOf(b, e)
		if !ok {
			f.warn("%s was dropped: the variable %s must hold the url of an image, or a list of them.", prompt.Place(b.At), language.Shorten(b.Variable))
			return nil
		}
		image.At = fmt.Sprintf("input_variables.%s[%d]", language.Shorten(b.Variable), i)
		blocks = append(blocks, image)
	}
	return blocks
}

// imageOf makes a block of one value of an image_variable or media_variable.
func imageOf(b *prompt.Block, value json.RawMessage) (prompt.Block, bool) {
	out := prompt.Block{Kind: "image_url", Text: rawjson.Text(value)}
	if b.Kind == "media_variable" {
		out.Kind = "media"
	}
	if value[0] == '{' {
		o := rawjson.Object(value)
		for _, inner := range []string{"image_url", "media"} {
			if v, ok := o.Get(inner); ok {
				out.Kind, value = inner, v
				break
			}
		}
		if out.Text = rawjson.Text(value); out.Text == "" {
			out.Text = rawjson.Text(rawjson.Member(value, "url"))
		}
		if value[0] == '{' {
			out.Raw = append(out.Raw, rawjson.MemberOf(out.Kind, value))
		}
	} else if raw, ok := b.Raw.Get(out.Kind); ok { // detail
		out.Raw = append(out.Raw, rawjson.MemberOf(out.Kind, raw))
	}
	return out, out.Text != ""
}
