//go:build linux

package dashboard

import (
	"slices"
	"strings"

	markup "golang.org/x/net/html"
)

func has(n *markup.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a markup.Attribute) bool { return a.Key == name })
}

func attr(n *markup.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func inside(n *markup.Node, element string) bool {
	for above := range n.Ancestors() {
		if above.Data == element {
			return true
		}
	}
	return false
}

// name returns the label of a link or a button.
func name(n *markup.Node) string {
	if label := attr(n, "aria-label"); label != "" {
		return label
	}
	return textContent(n)
}

func textContent(n *markup.Node) string {
	var b strings.Builder
	for node := range n.Descendants() {
		if node.Type == markup.TextNode {
			b.WriteString(node.Data)
		}
	}
	return b.String()
}

// textOf returns what a person reads on a page, without what others wrote: conversations,
// code and what is edited.
func textOf(n *markup.Node) string {
	var b strings.Builder
	var walk func(*markup.Node)
	walk = func(n *markup.Node) {
		if n.Type == markup.TextNode {
			b.WriteString(n.Data)
			return
		}

		switch n.Data {
		case "pre", "textarea", "option", "script", "style", "article", "mark":
			return
		}
		if strings.Contains(attr(n, "class"), "side-text") {
			return // of a diff
		}
		for child := range n.ChildNodes() {
			walk(child)
		}

		switch n.Data {
		case "a", "b", "span", "strong", "code", "time":
		default:
			b.WriteByte('\n')
		}
	}
	walk(n)
	return b.String()
}

// buttonsOf returns the buttons that send a form.
func buttonsOf(form *markup.Node) (all []*markup.Node) {
	for _, node := range partsOf(form) {
		if node.Data == "button" && attr(node, "type") != "button" {
			all = append(all, node)
		}
	}
	return all
}

// partsOf returns the elements that belong to a form: those in it that name no other one, and those
// elsewhere in the page that name it.
func partsOf(form *markup.Node) (all []*markup.Node) {
	for node := range form.Descendants() {
		if node.Type == markup.ElementNode && !has(node, "form") {
			all = append(all, node)
		}
	}
	if !has(form, "id") {
		return all
	}

	page := form
	for page.Parent != nil {
		page = page.Parent
	}
	for node := range page.Descendants() {
		if has(node, "form") && attr(node, "form") == attr(form, "id") {
			all = append(all, node)
		}
	}

	return all
}

// optionsOf returns the values of a select, the selected one first.
func optionsOf(list *markup.Node) []string {
	values := []string{""}
	for node := range list.Descendants() {
		if node.Type != markup.ElementNode || node.Data != "option" {
			continue
		}
		value := textContent(node)
		if has(node, "value") {
			value = attr(node, "value")
		}
		if len(values) == 1 || has(node, "selected") {
			values[0] = value
		}
		values = append(values, value)
	}
	return values
}
