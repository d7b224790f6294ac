package dashboard

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"promptspool/api/wire"
)

// compareView is what the comparison of two versions shows.
type compareView struct {
	templateHead
	A, B   int
	Left   wire.RawTemplate
	Right  wire.RawTemplate
	Rows   []diffRow // nil: they are equal
	Select []int     // the versions to choose from, newest first
}

// comparedMax bounds the versions that a form offers. Others can be written into the address.
const comparedMax = 200

func (d *Dashboard) comparePage(c *call) error {
	head, err := d.head(c, "compare")
	if err != nil {
		return err
	}
	v := compareView{templateHead: head}
	if v.A, err = version(c, "a", max(1, head.Latest()-1)); err != nil {
		return err
	}
	if v.B, err = version(c, "b", head.Latest()); err != nil {
		return err
	}
	for n := head.Latest(); n > max(0, head.Latest()-comparedMax); n-- {
		v.Select = append(v.Select, n)
	}
	if v.Left, err = d.Templates.Source(c.Context(), c.identity(), head.Name, wire.Selector{Version: v.A}); err != nil {
		return err
	}
	if v.Right, err = d.Templates.Source(c.Context(), c.identity(), head.Name, wire.Selector{Version: v.B}); err != nil {
		return err
	}
	v.Rows = diff(d.plain(v.Left), d.plain(v.Right))
	return d.show(c, http.StatusOK, "compare", head.Name, "templates", v)
}

// plain is a version as lines of text: its messages, then whatever else of it there is as JSON.
func (d *Dashboard) plain(raw wire.RawTemplate) string {
	var b strings.Builder
	b.WriteString(talk(d.blueprint(raw.Blueprint)))
	var blueprint, metadata map[string]json.RawMessage
	_ = json.Unmarshal(raw.Blueprint, &blueprint) // the registry checked them
	_ = json.Unmarshal(raw.Metadata, &metadata)
	var formats []json.RawMessage
	var messages []struct {
		Format json.RawMessage `json:"template_format"`
	}
	_ = json.Unmarshal(blueprint["messages"], &messages)
	for i, m := range messages {
		if m.Format != nil {
			formats = append(formats, encoded("message "+strconv.Itoa(i+1)+": "+textOf(m.Format)))
		}
	}
	if formats != nil {
		blueprint["formats"] = encoded(formats)
	}
	section(&b, "template", rest(blueprint, "type", "messages", "content", "input_variables"))
	section(&b, "metadata", rest(metadata))
	return b.String()
}

// talk is a conversation as lines of text, each turn under its role.
func talk(messages []Message) string {
	var b strings.Builder
	for _, m := range messages {
		var texts []string
		for _, p := range m.Parts {
			texts = append(texts, p.Text)
		}
		for _, call := range m.Calls {
			texts = append(texts, "calls "+call.Name+" "+call.Arguments)
		}
		section(&b, strings.TrimSpace(m.Role+" "+m.Name), strings.Join(texts, "\n"))
	}
	return b.String()
}

func section(b *strings.Builder, title, text string) {
	if text == "" {
		return
	}
	if b.Len() > 0 {
		b.WriteString("\n\n")
	}
	b.WriteString("# " + title + "\n" + text)
}
