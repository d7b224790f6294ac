//go:build linux

package dashboard

import (
	"encoding/csv"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	markup "golang.org/x/net/html"

	"promptspool/api/filterline"
)

// read checks a page, and notes what there is to press on it.
func (c *crawler) read(at *url.URL, body string) {
	c.visited = append(c.visited, at.RequestURI())
	for _, fault := range forbiddenSource.in(body) {
		c.fault("%s holds %q", at.RequestURI(), fault)
	}
	page, err := markup.Parse(strings.NewReader(body))
	if err != nil {
		c.fault("%s: %v", at.RequestURI(), err)
		return
	}
	text := textOf(page)
	for _, fault := range forbiddenText.in(text) {
		c.fault("%s says %q", at.RequestURI(), strings.TrimSpace(fault))
	}

	if c.path(at) == "/requests" {
		if count := listCount.FindStringSubmatch(text); count != nil {
			c.totals[at.RequestURI()], _ = strconv.Atoi(strings.Join(strings.FieldsFunc(count[1], isSpacing), ""))
		}
	}

	for node := range page.Descendants() {
		if node.Type != markup.ElementNode {
			continue
		}
		switch node.Data {
		case "a":
			if has(node, "href") {
				c.link(at, node)
			}
		case "link":
			c.later(pressing{label: "the file", from: at, to: c.resolve(at, attr(node, "href")), embedded: true})
		case "script", "img":
			if has(node, "src") && !strings.HasPrefix(attr(node, "src"), "data:") {
				c.later(pressing{label: "the file", from: at, to: c.resolve(at, attr(node, "src")), embedded: true})
			}
		case "form":
			c.form(at, node)
		}
	}
}

// forbidden is something that no page may hold. The expression is much slower than
// anything else that is done with a page, so it is given only the lines with one of the
// words, which are part of all that it can find.
type forbidden struct {
	expression *regexp.Regexp
	words      []string
}

func (w forbidden) in(text string) (found []string) {
	for line := range strings.Lines(text) {
		if slices.ContainsFunc(w.words, func(word string) bool { return strings.Contains(line, word) }) {
			found = append(found, w.expression.FindAllString(line, 3)...)
		}
	}
	return found
}

// forbiddenSource and forbiddenText are forbidden in a page's source and in what a person
// reads of it.
var (
	forbiddenSource = forbidden{
		regexp.MustCompile(`<nil>|&lt;nil&gt;|%3[cC]nil%3[eE]|ZgotmplZ|%![a-zA-Z(]|\b0x[0-9a-f]{6,}`),
		[]string{"nil", "ZgotmplZ", "%!", "0x"},
	}
	forbiddenText = forbidden{
		regexp.MustCompile(`\{\{|[nN]o such|\bNaN\b|\bundefined\b|` +
			`(?:^|[^0-9.,:-])1 (?:bars|bytes|calls|changes|characters|columns|days|entries|events|` +
			`hours|keys|lines|messages|minutes|people|records|requests|scores|sidecars|templates|tokens|` +
			`values|versions)\b`),
		[]string{"{{", "o such", "NaN", "undefined", "1 "},
	}
)

// listCount finds the length that a list of requests states, if it does.
var listCount = regexp.MustCompile(`\n([0-9][0-9,]*) requests?, newest first`)

func isSpacing(r rune) bool { return r < '0' || r > '9' }

var savedID = regexp.MustCompile(`"request_id":"([0-9a-f-]{36})"`)

// savedRequests counts the requests in an export. One of events also holds those whose
// request has not come.
func savedRequests(kind, body string) int {
	if strings.Contains(kind, "csv") {
		rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
		if err != nil {
			return -1
		}
		return len(rows) - 1
	}
	ids := map[string]bool{}
	for line := range strings.Lines(body) {
		isOther := strings.Contains(line, `"kind":"`) && !strings.Contains(line, `"kind":"request"`)
		if id := savedID.FindStringSubmatch(line); id != nil && !isOther {
			ids[id[1]] = true
		}
	}
	return len(ids)
}

// link notes a link, unless it leads elsewhere.
func (c *crawler) link(at *url.URL, a *markup.Node) {
	to := c.resolve(at, attr(a, "href"))
	if to.Host != c.base.Host {
		if attr(a, "target") != "_blank" {
			c.fault("%s leads elsewhere, to %s", at.RequestURI(), to)
		}
		return
	}
	if to.Path == at.Path && to.RawQuery == at.RawQuery && to.Fragment != "" {
		return
	}
	label := fmt.Sprintf("the link %q", strings.TrimSpace(name(a)))
	if inside(a, "main") && !leavesView(a) {
		c.kept(label, at, to)
	}
	to.Fragment = ""
	c.later(pressing{label: label, from: at, to: to, download: has(a, "download")})
}

// leavesView reports whether a link is meant to leave the view: it removes a condition or has
// another time, clears them all, opens another view, or shows the calls of the same failure
// or conversation.
func leavesView(a *markup.Node) bool {
	label := strings.TrimSpace(attr(a, "aria-label") + name(a))
	return strings.HasPrefix(label, "Remove the filter") || strings.HasPrefix(label, "Clear") ||
		label == "Show them" || label == "Conversation" ||
		has(a, "aria-current") || inside(a, "aside") || inside(a, "menu")
}

// kept reports a fault if a link of a view loses a filter.
func (c *crawler) kept(label string, at, to *url.URL) {
	views := func(u *url.URL) bool {
		path := c.path(u)
		return path == "/" || strings.HasPrefix(path, "/requests") && !strings.HasSuffix(path, "/raw")
	}
	statistics := c.path(at) == "/template/statistics" && (to.Path == at.Path || views(to))
	if !statistics && !(views(at) && views(to)) {
		return
	}

	after := c.conditions(to)
	lost := slices.DeleteFunc(c.conditions(at),
		func(condition string) bool { return slices.Contains(after, condition) })
	kind := "lost " + identifier.ReplaceAllString(at.Path+" "+to.Path, "/{id}")
	if len(lost) == 0 || c.pressed[kind] > 0 {
		return
	}
	c.pressed[kind]++ // whatever else leads there from such a page loses it as well
	slices.Sort(lost)
	c.fault("%s on %s loses %s: it leads to %s", label, at.RequestURI(), strings.Join(lost, ", "), to.RequestURI())
}

// conditions returns the filters in an address, as terms of a line. A stretch of time, as
// behind a bar, counts as the span that contains it.
func (c *crawler) conditions(u *url.URL) (all []string) {
	q := u.Query()
	line, err := filterline.Parse(q.Get("filter"))
	if err != nil {
		return []string{q.Get("filter")}
	}
	for i := range line.Terms {
		if line.Terms[i].IsTime() {
			all = append(all, "a span")
		} else {
			all = append(all, line.Terms[i].String())
		}
	}
	if strings.HasPrefix(c.path(u), "/template") {
		if q.Get("span") != "" {
			all = append(all, "a span")
		}
		if q.Has("name") {
			named := filterline.Where("template", "", q.Get("name"))
			all = append(all, named.String())
		}
	}
	slices.Sort(all)

	return slices.Compact(all)
}

// form notes each button of a form, pressed with the form as it is, and with its fields
// filled in.
func (c *crawler) form(at *url.URL, form *markup.Node) {
	if attr(form, "method") == "dialog" {
		return
	}
	to := c.resolve(at, attr(form, "action"))

	buttons := buttonsOf(form)
	if len(buttons) == 0 {
		c.fault("%s has a form to %s without a button", at.RequestURI(), to.Path)
	}
	for _, button := range buttons {
		for _, filled := range []bool{false, true} {
			values, changed := c.fill(form, filled)
			if filled && !changed {
				continue
			}
			if strings.Contains(values.Encode(), url.QueryEscape(unfilled)) {
				continue // a browser would not send it
			}
			if has(button, "name") {
				values.Add(attr(button, "name"), attr(button, "value"))
			}

			label := fmt.Sprintf("the button %q", strings.TrimSpace(name(button)))
			if attr(form, "method") == "post" {
				c.later(pressing{label: label, from: at, to: to, form: values})
				continue
			}

			target := *to
			target.RawQuery = values.Encode()
			if inside(form, "main") {
				c.kept(label, at, &target)
			}
			c.later(pressing{label: label, from: at, to: &target})
		}
	}
}

// unfilled is the value of a field that must be filled in before the form is sent.
const unfilled = "\x00"

// fill reads the fields of a form as a browser would send them: as they are, or with the
// crawler's answers in those that are empty.
func (c *crawler) fill(form *markup.Node, filled bool) (values url.Values, changed bool) {
	values = url.Values{}
	chosen := map[string]bool{}
	for _, node := range partsOf(form) {
		name := attr(node, "name")
		if name == "" || has(node, "disabled") {
			continue
		}
		switch node.Data {
		case "input":
			value, kind := attr(node, "value"), attr(node, "type")
			switch kind {
			case "checkbox":
				if !has(node, "checked") {
					continue
				}
			case "radio":
				if chosen[name] {
					continue
				}
				chosen[name] = true
			case "hidden", "submit", "button":
			default:
				answer, known := c.answers[name]
				switch {
				case filled && known && value == "":
					value, changed = answer, true
				case value == "" && has(node, "required"):
					value = unfilled
				}
			}
			values.Add(name, value)
		case "textarea":
			values.Add(name, strings.ReplaceAll(textContent(node), "\n", "\r\n"))
		case "select":
			options := optionsOf(node)
			value := options[0]
			answer, known := c.answers[name]
			if filled && known && slices.Contains(options[1:], answer) && value == "" {
				value, changed = answer, true
			}
			values.Add(name, value)
		}
	}

	return values, changed
}

// excerpt returns the beginning of the text of a page or an answer.
func excerpt(body string) string {
	if at := strings.Index(body, "<main"); at >= 0 {
		if page, err := markup.Parse(strings.NewReader(body[at:])); err == nil {
			body = strings.Join(strings.Fields(textOf(page)), " ")
		}
	}
	return body[:min(len(body), 300)]
}
