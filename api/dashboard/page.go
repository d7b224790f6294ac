package dashboard

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"promptspool/api/wire"
)

// pages are the parsed pages by the names of their files, each with the layout around it.
type pages map[string]*template.Template

// parsePages parses the pages with some names, all of them without any: a sidecar spends no memory on those it does not have.
func parsePages(only ...string) pages {
	base := template.Must(template.New("").Funcs(helpers).ParseFS(files, "html/layout/*.html"))
	names, err := fs.Glob(files, "html/*.html")
	if err != nil || len(names) == 0 {
		panic(fmt.Sprintf("dashboard: no pages: %v", err))
	}
	all := pages{}
	for _, name := range names {
		page := strings.TrimSuffix(path.Base(name), ".html")
		if len(only) == 0 || slices.Contains(only, page) {
			all[page] = template.Must(template.Must(base.Clone()).ParseFS(files, name))
		}
	}
	return all
}

// helpers are the functions that pages use.
var helpers = template.FuncMap{
	"moment":  moment,
	"ago":     ago,
	"latency": latency,
	"tokens":  tokens,
	"cost":    cost,
	"count":   grouped,
	"percent": percent,
	"dollars": dollars,
	"plus":    func(a, b int) int { return a + b },
	"latencyMS": func(ms *float64) string {
		if ms == nil {
			return "unknown"
		}
		seconds := *ms / 1000
		return latency(&seconds)
	},
	"pretty": func(raw json.RawMessage) string { return cmp.Or(layOut(string(raw)), string(raw)) },
	"where":  where,
	"page":   templateAddress,
	"digits": strconv.Itoa,
	"compared": func(title, left, right string, rows []diffRow) comparedRows {
		return comparedRows{title, left, right, rows}
	},
	"rows":        func(text string) int { return min(max(strings.Count(text, "\n")+len(text)/80+2, 3), 30) },
	"bytes":       func(n int64) string { return humanize.IBytes(uint64(max(n, 0))) },
	"span":        spanned,
	"ahead":       ahead,
	"spanSeconds": func(seconds float64) string { return spanned(time.Duration(seconds * float64(time.Second))) },
	"grouped":     func(n int) string { return grouped(int64(n)) },
	"quantity":    func(n int, noun string) string { return quantity(int64(n), noun) },
	"quantity64":  quantity,
	"roleClass":   roleClass,
	"entry": func(nav, name, href, text string) menuEntry {
		return menuEntry{Href: href, Text: text, Current: nav == name}
	},
}

// comparedRows are two texts side by side.
type comparedRows struct {
	Title, LeftTitle, RightTitle string
	Rows                         []diffRow
}

// menuEntry is a line of the menu.
type menuEntry struct {
	Href, Text string
	Current    bool
}

// moment prints a time for machines; the script turns it into the reader's own zone.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// ago prints how long it is since then, roughly.
func ago(now, then time.Time) string {
	d := now.Sub(then)
	switch {
	case d < 0:
		return "just now"
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return fmt.Sprintf("%d days ago", int(d.Hours()/24))
}

// view is what the layout shows around a page's own data.
type view struct {
	Title   string
	Nav     string // which entry of the menu is the current one
	User    *wire.User
	CSRF    string
	Session string // names the session in forms that may be sent after its end
	Notice  string // what has just been done
	Version string
	Now     time.Time
	Curl    string // logs a call here
	Base    string // this server's address
	SignIn  bool   // people sign in here
	Data    any
}

// show answers with a page. notice comes from the address, where a form that was carried out left it.
func (d *Dashboard) show(c *call, status int, name, title, nav string, data any) error {
	v := view{Title: title, Nav: nav, Version: d.Version, Now: d.Now(), Curl: curl(c.Request), Base: base(c.Request), SignIn: d.People != nil, Data: data}
	if c.User.ID != "" {
		v.User, v.CSRF, v.Session = &c.User, c.CSRF(), c.FormSession()
	}
	v.Notice = cmp.Or(c.notice, notices[c.URL.Query().Get("done")])
	var page bytes.Buffer
	if err := d.pages[name].ExecuteTemplate(&page, "layout", v); err != nil {
		return fmt.Errorf("page %s: %w", name, err)
	}
	c.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	c.w.WriteHeader(status)
	_, err := c.w.Write(page.Bytes())
	return err
}

// part answers with a template of a page alone, for the script to put in its place.
func (d *Dashboard) part(c *call, page, name string, data any) error {
	var part bytes.Buffer
	if err := d.pages[page].ExecuteTemplate(&part, name, data); err != nil {
		return fmt.Errorf("%s of page %s: %w", name, page, err)
	}
	c.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, err := c.w.Write(part.Bytes())
	return err
}

// notices are what a page says after a form was carried out, by the word in its address. Nobody can make it say anything else.
var notices = map[string]string{
	"scored":       "The score is set.",
	"signed-out":   "You have signed out.",
	"password":     "Your password has been changed. All your other sessions have been signed out.",
	"revoked":      "The key is revoked: calls with it are refused from now on.",
	"uninvited":    "The invite is revoked: its link no longer works.",
	"resumed":      "You are signed in again. Nothing has been sent yet: check your changes, then send them.",
	"other-person": "You signed in as someone else than the author of the changes that were waiting. They were discarded.",
	"saved":        "Saved. Apps that ask for the latest version get it within a second.",
	"unchanged":    "Nothing was changed, so no version was made.",
	"label":        "The label is moved. Apps that ask for it get this version within a second.",
	"unlabelled":   "The label is gone.",
	"archived":     "The template is archived: apps do not find it any more.",
	"restored":     "The template is in use again.",
}

// done sends the browser on to a page after a form was carried out.
func (c *call) done(to, word string) error {
	switch {
	case word == "":
	case strings.Contains(to, "?"):
		to += "&done=" + word
	default:
		to += "?done=" + word
	}
	http.Redirect(c.w, c.Request, to, http.StatusSeeOther)
	return nil
}

// curl is a line that logs a call, for somebody who has nothing logged yet.
func curl(r *http.Request) string {
	return "curl " + base(r) + `/rest/track-request -H 'Content-Type: application/json' -d '{
  "api_key": "YOUR KEY", "function_name": "openai.ChatCompletion.create",
  "kwargs": {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Say hello."}]},
  "request_response": {"model": "gpt-4o-mini", "choices": [{"index": 0, "finish_reason": "stop",
    "message": {"role": "assistant", "content": "Hello!"}}], "usage": {"prompt_tokens": 10, "completion_tokens": 2}},
  "request_start_time": '$(date +%s.%N)', "request_end_time": '$(date +%s.%N)'}'`
}

// base is this server's address, as the caller wrote it.
func base(r *http.Request) string {
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// roleClass is how a message of a role looks.
func roleClass(role string) string {
	switch role {
	case "system", "developer", "user", "assistant", "tool", "function":
		return "is-" + role
	}
	return ""
}
