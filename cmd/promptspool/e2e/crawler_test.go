package e2e

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	markup "golang.org/x/net/html"
)

// crawler goes through a dashboard as somebody who presses every link and every button, and
// notes what a person would call a fault. It resolves links and fills in forms as a browser does.
type crawler struct {
	base    *url.URL
	cookie  *http.Cookie
	answers map[string]string // what is written into the fields of forms, by name

	// refusals are answers other than 200 that are right, by a part of their text.
	refusals []string

	pressed map[string]int // how often each kind of address was visited
	totals  map[string]int // how many requests a list says that it has, by its address
	pages   []pressing     // still to visit
	forms   []pressing     // still to send; those that destroy something last
	visited []string       // the addresses of all pages that were shown
	faults  []string
}

// pressing is a link or a button of a page.
type pressing struct {
	what string // as a person would call it
	from *url.URL
	to   *url.URL
	form url.Values // nil for a link and a form that is sent by GET

	embedded bool // a script, a style or an image
	download bool
}

// sessionName is the cookie that a browser is known by.
const sessionName = "__Host-promptspool"

const (
	pressesOfAKindMax = 2
	pressesOfAPathMax = 14
	pressesMax        = 2000
	hopsMax           = 5
)

// crawl presses everything that can be reached from a page.
func (c *crawler) crawl(start ...string) {
	c.pressed, c.totals = map[string]int{}, map[string]int{}
	for _, address := range start {
		c.pages = append(c.pages, pressing{what: "the address " + address, from: c.base, to: c.resolve(c.base, address)})
	}

	for range pressesMax {
		next, ok := c.next()
		if !ok {
			return
		}
		c.press(next)
	}
	c.fault("more than %d links and buttons: the crawl does not end", pressesMax)
}

// next takes what is to be pressed next: pages before forms, and the most harmless form first.
func (c *crawler) next() (p pressing, ok bool) {
	if len(c.pages) > 0 {
		p, c.pages = c.pages[0], c.pages[1:]
		return p, true
	}
	if len(c.forms) == 0 {
		return p, false
	}
	slices.SortStableFunc(c.forms, func(a, b pressing) int { return harm(a) - harm(b) })
	p, c.forms = c.forms[0], c.forms[1:]
	return p, true
}

// harm orders forms: what destroys something, or ends the session, is pressed at the end.
func harm(p pressing) int {
	ranks := []string{"/delete", "/archive", "/revoke", "/reset", "/disabled", "/role", "/password", "/sign-out"}
	return 1 + slices.IndexFunc(ranks, func(part string) bool { return strings.Contains(p.to.Path, part) })
}

func (c *crawler) fault(format string, args ...any) {
	if fault := fmt.Sprintf(format, args...); !slices.Contains(c.faults, fault) {
		c.faults = append(c.faults, fault)
	}
}

// press follows a link or sends a form, and looks at what comes back.
func (c *crawler) press(p pressing) {
	if p.form != nil && !c.renew(p) {
		return
	}
	res, body, err := c.fetch(p)
	if err != nil {
		c.fault("%s on %s: %v", p.what, p.from.RequestURI(), err)
		return
	}
	kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	isHTML := kind == "text/html"

	switch {
	case p.embedded:
		if res.StatusCode != http.StatusOK || isHTML {
			c.fault("%s on %s is answered %d %s", p.what, p.from.RequestURI(), res.StatusCode, kind)
		}
		return
	case res.StatusCode == http.StatusOK:
	case isHTML && slices.ContainsFunc(c.refusals, func(text string) bool { return strings.Contains(body, text) }):
	default:
		c.fault("%s on %s leads to %s: %d %s", p.what, p.from.RequestURI(), p.to.RequestURI(), res.StatusCode, excerpt(body))
		return
	}

	saved := p.download || strings.HasPrefix(res.Header.Get("Content-Disposition"), "attachment")
	if saved || strings.HasSuffix(res.Request.URL.Path, "/raw") {
		if isHTML || body == "" {
			c.fault("%s on %s saves %q as %s", p.what, p.from.RequestURI(), excerpt(body), kind)
		}
		if total, known := c.totals[p.from.RequestURI()]; known && saved && savedRequests(kind, body) != total {
			c.fault("%s on %s, which shows %d requests, saves %d", p.what, p.from.RequestURI(), total, savedRequests(kind, body))
		}
		return
	}
	if !isHTML {
		c.fault("%s on %s leads to %s, which shows %s: %s",
			p.what, p.from.RequestURI(), p.to.RequestURI(), kind, excerpt(body))
		return
	}
	c.read(res.Request.URL, body)
}

// renew loads the page of a form again, because what was pressed since may have ended the session or taken the
// form away. It reports whether the form is still there.
func (c *crawler) renew(p pressing) bool {
	_, body, err := c.fetch(pressing{from: p.from, to: p.from})
	token := csrfField.FindStringSubmatch(body)
	if err != nil || !strings.Contains(body, `action="`+p.to.Path+`"`) {
		return false
	}
	if token != nil {
		p.form.Set("csrf", token[1])
	}
	return true
}

var csrfField = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// fetch sends a request as a browser does, and follows where it is sent on to.
func (c *crawler) fetch(p pressing) (res *http.Response, body string, err error) {
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	to, form := p.to, p.form
	for range hopsMax {
		method := http.MethodGet
		var content io.Reader
		if form != nil {
			method, content = http.MethodPost, strings.NewReader(form.Encode())
		}
		req, err := http.NewRequest(method, to.String(), content)
		if err != nil {
			return nil, "", err
		}
		req.Header.Set("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
		req.Header.Set("Sec-Fetch-Site", "same-origin")
		req.Header.Set("Sec-Fetch-Mode", "navigate")
		if form != nil {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Origin", c.base.Scheme+"://"+c.base.Host)
		}
		if c.cookie != nil {
			req.AddCookie(c.cookie)
		}

		if res, err = client.Do(req); err != nil {
			return nil, "", err
		}
		text, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil {
			return nil, "", err
		}
		for _, cookie := range res.Cookies() {
			if cookie.Name == sessionName {
				c.cookie = cookie
			}
		}
		if res.StatusCode != http.StatusSeeOther {
			return res, string(text), nil
		}
		next, err := res.Location()
		if err != nil {
			return nil, "", err
		}
		to, form = next, nil
	}
	return nil, "", fmt.Errorf("sent on more than %d times", hopsMax)
}

// read looks at a page, and notes what there is to press on it.
func (c *crawler) read(at *url.URL, body string) {
	c.visited = append(c.visited, at.RequestURI())
	for _, wrong := range wrongSource.in(body) {
		c.fault("%s holds %q", at.RequestURI(), wrong)
	}
	page, err := markup.Parse(strings.NewReader(body))
	if err != nil {
		c.fault("%s: %v", at.RequestURI(), err)
		return
	}
	text := textOf(page)
	for _, wrong := range wrongText.in(text) {
		c.fault("%s says %q", at.RequestURI(), strings.TrimSpace(wrong))
	}

	if at.Path == "/requests" {
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
			c.later(pressing{what: "the file", from: at, to: c.resolve(at, attr(node, "href")), embedded: true})
		case "script", "img":
			if has(node, "src") && !strings.HasPrefix(attr(node, "src"), "data:") {
				c.later(pressing{what: "the file", from: at, to: c.resolve(at, attr(node, "src")), embedded: true})
			}
		case "form":
			c.form(at, node)
		}
	}
}

// wrongness is what no page holds. The expression is much slower than anything else that is done with a page, so only
// those lines are given to it in which one of the words stands that all that it finds has.
type wrongness struct {
	expression *regexp.Regexp
	words      []string
}

func (w wrongness) in(text string) (found []string) {
	for line := range strings.Lines(text) {
		if slices.ContainsFunc(w.words, func(word string) bool { return strings.Contains(line, word) }) {
			found = append(found, w.expression.FindAllString(line, 3)...)
		}
	}
	return found
}

// wrongSource and wrongText are what no page holds, in its source and in what a person reads.
var (
	wrongSource = wrongness{
		regexp.MustCompile(`<nil>|&lt;nil&gt;|%3[cC]nil%3[eE]|ZgotmplZ|%![a-zA-Z(]|\b0x[0-9a-f]{6,}`),
		[]string{"nil", "ZgotmplZ", "%!", "0x"},
	}
	wrongText = wrongness{
		regexp.MustCompile(`\{\{|[nN]o such|\bNaN\b|\bundefined\b|` +
			`(?:^|[^0-9.,:\x{202f}-])1 (?:bars|bytes|calls|changes|characters|columns|days|entries|events|hours|keys|lines|` +
			`messages|minutes|people|records|requests|scores|sidecars|templates|tokens|values|versions)\b`),
		[]string{"{{", "o such", "NaN", "undefined", "1 "},
	}
)

// listCount is what a list of requests says of its length, if it knows it.
var listCount = regexp.MustCompile(`\n([0-9][0-9,\x{202f}]*) requests?, newest first`)

func isSpacing(r rune) bool { return r < '0' || r > '9' }

var savedID = regexp.MustCompile(`"request_id":"([0-9a-f-]{36})"`)

// savedRequests counts the requests that an export holds. One of events also holds those whose request has not come.
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
	what := fmt.Sprintf("the link %q", strings.TrimSpace(name(a)))
	if inside(a, "main") && !leavesView(a) {
		c.kept(what, at, to)
	}
	to.Fragment = ""
	c.later(pressing{what: what, from: at, to: to, download: has(a, "download")})
}

// leavesView reports whether a link is meant to leave the view: it takes a condition away, clears them all, or begins
// another view.
func leavesView(a *markup.Node) bool {
	label := attr(a, "aria-label") + name(a)
	return strings.HasPrefix(label, "Remove the filter") || strings.HasPrefix(label, "Clear") ||
		has(a, "aria-current") || inside(a, "aside")
}

// kept notes a filter that a link of a view loses.
func (c *crawler) kept(what string, at, to *url.URL) {
	views := func(u *url.URL) bool {
		return u.Path == "/" || strings.HasPrefix(u.Path, "/requests") && !strings.HasSuffix(u.Path, "/raw")
	}
	statistics := at.Path == "/template/statistics" && (to.Path == at.Path || views(to))
	if !statistics && !(views(at) && views(to)) {
		return
	}

	after := conditions(to)
	lost := slices.DeleteFunc(conditions(at), func(condition string) bool { return slices.Contains(after, condition) })
	kind := "lost " + identifier.ReplaceAllString(at.Path+" "+to.Path, "/{id}")
	if len(lost) == 0 || c.pressed[kind] > 0 {
		return
	}
	c.pressed[kind]++ // what else leads there from such a page loses it as well
	slices.Sort(lost)
	c.fault("%s on %s loses %s: it leads to %s", what, at.RequestURI(), strings.Join(lost, ", "), to.RequestURI())
}

// conditions are what an address narrows a view by. A stretch of time, as behind a bar, stands for the span in which
// it lies.
func conditions(u *url.URL) (all []string) {
	q := u.Query()
	for i, field := range q["field"] {
		at := func(name string) string {
			if i < len(q[name]) {
				return q[name][i]
			}
			return ""
		}
		switch {
		case field == "":
		case at("op") == "is" && at("key") == "":
			all = append(all, field+"="+at("value"))
		default:
			all = append(all, strings.Join([]string{field, at("key"), at("op"), at("value")}, " "))
		}
	}
	for name, values := range q {
		switch name {
		case "field", "key", "op", "value", "col", "cursor", "done", "all", "bucket", "score", "format", "page":
			continue
		case "name":
			if strings.HasPrefix(u.Path, "/template") {
				name = "prompt_name"
			}
		case "span":
			name = ""
			if values[0] != "" {
				all = append(all, "a span")
			}
		}
		for _, value := range values {
			if name != "" && value != "" {
				all = append(all, name+"="+value)
			}
		}
	}
	return all
}

// form notes each button of a form, pressed with the form as it stands, and with its fields filled in.
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
			what := fmt.Sprintf("the button %q", strings.TrimSpace(name(button)))
			if attr(form, "method") == "post" {
				c.later(pressing{what: what, from: at, to: to, form: values})
				continue
			}
			target := *to
			target.RawQuery = values.Encode()
			if inside(form, "main") {
				c.kept(what, at, &target)
			}
			c.later(pressing{what: what, from: at, to: &target})
		}
	}
}

// unfilled stands in a field that must be filled in before the form is sent.
const unfilled = "\x00"

// fill reads the fields of a form as a browser would send them: as they stand, or with the crawler's answers in those
// that are empty.
func (c *crawler) fill(form *markup.Node, filled bool) (values url.Values, changed bool) {
	values = url.Values{}
	chosen := map[string]bool{}
	for node := range form.Descendants() {
		name := attr(node, "name")
		if node.Type != markup.ElementNode || name == "" || has(node, "disabled") {
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
			if answer, known := c.answers[name]; filled && known && slices.Contains(options[1:], answer) && value == "" {
				value, changed = answer, true
			}
			values.Add(name, value)
		}
	}
	return values, changed
}

// later notes a press, unless enough of its kind were noted.
func (c *crawler) later(p pressing) {
	kind, path := kindOf(p), identifier.ReplaceAllString(p.to.Path, "/{id}")
	if c.pressed[kind] >= pressesOfAKindMax || c.pressed[path+" in all"] >= pressesOfAPathMax {
		return
	}
	c.pressed[kind]++
	c.pressed[path+" in all"]++
	if p.form != nil {
		c.forms = append(c.forms, p)
	} else {
		c.pages = append(c.pages, p)
	}
}

// identifier is a part of a path that names one thing of many.
var identifier = regexp.MustCompile(`/[0-9a-f]{8}-[0-9a-f-]{27}|/[a-z]*_?[0-9a-zA-Z_-]{16,}`)

// kindOf is a press with what differs from record to record taken out.
func kindOf(p pressing) string {
	kind := identifier.ReplaceAllString(p.to.Path, "/{id}")
	query := p.to.Query()
	query.Del("done")
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if slices.ContainsFunc(query[name], func(v string) bool { return v != "" }) {
			kind += " " + name
		}
	}
	if p.form != nil {
		kind += " POST " + strings.TrimRight(p.form.Get("do"), "-0123456789") + p.form.Get("disabled")
	}
	return kind
}

func (c *crawler) resolve(at *url.URL, address string) *url.URL {
	to, err := at.Parse(address)
	if err != nil {
		c.fault("%s has the address %q: %v", at.RequestURI(), address, err)
		return c.base
	}
	return to
}

func mustParse(address string) *url.URL {
	u, err := url.Parse(address)
	if err != nil {
		panic(err)
	}
	return u
}

// excerpt is the beginning of what a page or an answer says.
func excerpt(body string) string {
	if at := strings.Index(body, "<main"); at >= 0 {
		if page, err := markup.Parse(strings.NewReader(body[at:])); err == nil {
			body = strings.Join(strings.Fields(textOf(page)), " ")
		}
	}
	return body[:min(len(body), 300)]
}

// These read a parsed page.

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

// name is what a link or a button is called.
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

// textOf is what a person reads on a page, less what somebody else wrote: conversations, code and what is being edited.
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

// buttonsOf are the buttons that send a form.
func buttonsOf(form *markup.Node) (all []*markup.Node) {
	for node := range form.Descendants() {
		if node.Type == markup.ElementNode && node.Data == "button" && attr(node, "type") != "button" {
			all = append(all, node)
		}
	}
	return all
}

// optionsOf are the values of a select, the selected one first.
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
