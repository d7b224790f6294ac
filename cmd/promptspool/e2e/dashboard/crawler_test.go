//go:build linux

package dashboard

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// crawler walks through a dashboard as somebody who presses every link and every button,
// and notes what a person would call a fault. It resolves links and fills in forms as a
// browser does.
type crawler struct {
	base    *url.URL
	cookie  *http.Cookie
	zone    string            // in which the browser is; "" for one that does not tell
	answers map[string]string // the texts for the fields of forms, by name

	// refusals are answers other than 200 that are right; each is a part of such a page's
	// text.
	refusals []string

	ofAKind int            // how many links or buttons of a kind are pressed
	pressed map[string]int // how often each kind of address was visited
	totals  map[string]int // how many requests a list says it has, by its address
	pages   []pressing     // still to visit
	forms   []pressing     // still to send; those that destroy something last
	visited []string       // the addresses of all pages that were shown
	faults  []string
}

// pressing is a link or a button of a page.
type pressing struct {
	label string // as a person would call it
	from  *url.URL
	to    *url.URL
	form  url.Values // nil for a link and a form that is sent by GET

	embedded bool // a script, a style or an image
	download bool
}

// sessionName ends the names of the cookies that carry a browser's session.
const sessionName = "promptspool"

const (
	pressesOfAPathMax = 14
	pressesMax        = 2000
	hopsMax           = 5
)

// crawl presses everything that can be reached from some addresses.
func (c *crawler) crawl(start ...string) {
	c.pressed, c.totals = map[string]int{}, map[string]int{}
	for _, address := range start {
		c.pages = append(c.pages, pressing{
			label: "the address " + address, from: c.base, to: c.resolve(c.base, address),
		})
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

// next takes the next press: pages before forms, and the most harmless form first.
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

// harm ranks forms: those that destroy something, or end the session, come last.
func harm(p pressing) int {
	ranks := []string{"/delete", "/archive", "/revoke", "/reset", "/disabled", "/role", "/password", "/sign-out"}
	return 1 + slices.IndexFunc(ranks, func(part string) bool { return strings.Contains(p.to.Path, part) })
}

func (c *crawler) fault(format string, args ...any) {
	if fault := fmt.Sprintf(format, args...); !slices.Contains(c.faults, fault) {
		c.faults = append(c.faults, fault)
	}
}

// press follows a link or sends a form, and checks the answer.
func (c *crawler) press(p pressing) {
	if p.form != nil && !c.renew(p) {
		return
	}
	res, body, err := c.fetch(p)
	if err != nil {
		c.fault("%s on %s: %v", p.label, p.from.RequestURI(), err)
		return
	}
	kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	isHTML := kind == "text/html"

	switch {
	case p.embedded:
		if res.StatusCode != http.StatusOK || isHTML {
			c.fault("%s on %s is answered %d %s", p.label, p.from.RequestURI(), res.StatusCode, kind)
		}
		return
	case res.StatusCode == http.StatusOK:
	case isHTML && slices.ContainsFunc(c.refusals, func(text string) bool { return strings.Contains(body, text) }):
	default:
		c.fault("%s on %s leads to %s: %d %s",
			p.label, p.from.RequestURI(), p.to.RequestURI(), res.StatusCode, excerpt(body))
		return
	}

	saved := p.download || strings.HasPrefix(res.Header.Get("Content-Disposition"), "attachment")
	shown := res.Request.URL.Path
	if saved || strings.HasSuffix(shown, "/raw") || strings.HasSuffix(shown, "/text") {
		if isHTML || body == "" {
			c.fault("%s on %s saves %q as %s", p.label, p.from.RequestURI(), excerpt(body), kind)
		}
		total, known := c.totals[p.from.RequestURI()]
		if known && saved && savedRequests(kind, body) != total {
			c.fault("%s on %s, which shows %d requests, saves %d",
				p.label, p.from.RequestURI(), total, savedRequests(kind, body))
		}
		return
	}
	if isPicture := strings.HasPrefix(kind, "image/"); isPicture && strings.Contains(p.to.Path, "/docs/pictures/") {
		return
	}
	if !isHTML {
		c.fault("%s on %s leads to %s, which shows %s: %s",
			p.label, p.from.RequestURI(), p.to.RequestURI(), kind, excerpt(body))
		return
	}
	c.read(res.Request.URL, body)
}

// renew loads the page of a form again, because an earlier press may have ended the
// session or removed the form. It reports whether the form is still there.
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

// fetch sends a request as a browser does, and follows redirects.
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
		if c.zone != "" {
			req.AddCookie(&http.Cookie{Name: "zone", Value: url.QueryEscape(c.zone)})
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
			if strings.HasSuffix(cookie.Name, sessionName) {
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

// later notes a press, unless enough of its kind were noted.
func (c *crawler) later(p pressing) {
	if !strings.HasPrefix(p.to.Path, c.base.Path) {
		c.fault("%s on %s leads out of %s, to %s", p.label, p.from.RequestURI(), c.base.Path, p.to.Path)
	}
	kind, path := kindOf(p), identifier.ReplaceAllString(p.to.Path, "/{id}")
	if c.pressed[kind] >= c.ofAKind || c.pressed[path+" in all"] >= pressesOfAPathMax {
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

// kindOf returns what a press has in common with those of other records.
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

// at returns a visit of a path below the base.
func (c *crawler) at(path string) pressing { return pressing{from: c.base, to: c.base.JoinPath(path)} }

// path returns the path of an address below the base.
func (c *crawler) path(u *url.URL) string { return "/" + strings.TrimPrefix(u.Path, c.base.Path) }

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
