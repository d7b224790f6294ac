package dashboard

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"promptspool/api/dashboard/markup"
	"promptspool/api/dashboard/textdiff"
	"promptspool/api/wire"
)

// pages are the parsed pages by the names of their files, each with the layout around it.
type pages map[string]*template.Template

// parsePages parses the named pages, or all of them if none are named: a sidecar spends
// no memory on pages that it does not serve.
func parsePages(only ...string) pages {
	base := template.Must(template.New("").Funcs(helpers).ParseFS(files, "html/layout/*.html"))
	names, err := fs.Glob(files, "html/*.html")
	if err != nil || len(names) == 0 {
		panic(fmt.Sprintf("dashboard: no pages: %v", err))
	}

	// Every page gets its own copy of the layout, because pages define templates of the
	// same names.
	all := pages{}
	for _, name := range names {
		page := strings.TrimSuffix(path.Base(name), ".html")
		if len(only) == 0 || slices.Contains(only, page) {
			all[page] = template.Must(template.Must(base.Clone()).ParseFS(files, name))
		}
	}

	return all
}

// helpers are the functions that pages call.
var helpers = template.FuncMap{
	// Times.
	"moment":      moment,
	"ago":         ago,
	"ahead":       clockOffset,
	"latency":     latency,
	"latencyMS":   latencyMS,
	"span":        roughly,
	"spanSeconds": roughSeconds,

	// Numbers.
	"bytes":      byteSize,
	"cost":       cost,
	"count":      grouped,
	"digits":     strconv.Itoa,
	"dollars":    dollars,
	"grouped":    func(n int) string { return grouped(int64(n)) },
	"percent":    percent,
	"plus":       func(a, b int) int { return a + b },
	"quantity":   func(n int, noun string) string { return quantity(int64(n), noun) },
	"quantity64": quantity,
	"tokens":     tokens,

	// Addresses.
	"entry": newMenuEntry,
	"page":  templateAddress,
	"where": requestsAddress,

	// Texts.
	"breakable": breakable,
	"compared":  newComparedRows,
	"pretty":    indented,
	"roleClass": roleClass,
	"rows":      textareaRows,
}

// comparedRows are two texts side by side.
type comparedRows struct {
	Title, LeftTitle, RightTitle string
	Rows                         []textdiff.Row
}

func newComparedRows(title, left, right string, rows []textdiff.Row) comparedRows {
	return comparedRows{title, left, right, rows}
}

// menuEntry is a line of the menu.
type menuEntry struct {
	Href, Text string
	Current    bool
}

func newMenuEntry(nav, name, href, text string) menuEntry {
	return menuEntry{Href: href, Text: text, Current: nav == name}
}

// layOut indents a JSON object or array. It returns "" for anything else.
func layOut(s string) string {
	laid, _ := markup.Indent(s)
	return laid
}

// indented prints JSON for people.
func indented(raw json.RawMessage) string {
	return cmp.Or(layOut(string(raw)), string(raw))
}

// byteSize prints a number of bytes.
func byteSize(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

// textareaRows returns how many rows the field of a text gets: enough for most texts,
// whose lines wrap at about 80 letters.
func textareaRows(text string) int {
	return min(max(strings.Count(text, "\n")+len(text)/80+2, 3), 30)
}

// breakable returns a name that a narrow page may break behind its signs.
func breakable(name string) template.HTML {
	return template.HTML(wordBreaks.Replace(template.HTMLEscapeString(name)))
}

var wordBreaks = strings.NewReplacer("/", "/<wbr>", "-", "-<wbr>", "_", "_<wbr>", ".", ".<wbr>")

// roleClass returns the CSS class of a message with a role.
func roleClass(role string) string {
	switch role {
	case "system", "developer", "user", "assistant", "tool", "function":
		return "is-" + role
	}

	return ""
}

// moment prints a time in UTC. See shownZone.localize.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// ago prints roughly how long ago something was.
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
	Nav     string // the current entry of the menu
	User    *wire.User
	CSRF    string
	Session string // names the session, in forms that may be sent after its end
	Notice  string // what has just been done
	Undo    string // that, for the form that takes it back; "" if it cannot be
	Version string
	Now     time.Time
	Curl    string // a command that logs a call here
	Base    string // this server's address
	SignIn  bool   // people can sign in here
	Zone    shownZone
	Data    any
}

// show answers with a page. It is rendered before the first byte is sent, so that a
// failure can still be answered with the error page.
func (d *Dashboard) show(c *call, status int, name, title, nav string, data any) error {
	v := view{
		Title:   title,
		Nav:     nav,
		Notice:  notices[c.URL.Query().Get("done")],
		Version: d.Version,
		Now:     d.Now(),
		Curl:    exampleCurl(d.base(c.Request)),
		Base:    d.base(c.Request),
		SignIn:  d.People != nil,
		Zone:    c.zone(),
		Data:    data,
	}
	// Nobody is signed in on the pages to sign in, and perhaps on an error page.
	if c.User.ID != "" {
		if sealed, notice := d.offered(c); notice != "" {
			v.Undo, v.Notice = sealed, notice
		}
		v.User, v.CSRF, v.Session = &c.User, c.CSRF(), c.FormSession()
	}

	var page bytes.Buffer
	if err := d.pages[name].ExecuteTemplate(&page, "layout", v); err != nil {
		return fmt.Errorf("page %s: %w", name, err)
	}

	c.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	c.w.WriteHeader(status)
	_, err := c.w.Write(v.Zone.localize(page.Bytes()))

	return err
}

// part answers with one template of a page, for the page's script to insert.
func (d *Dashboard) part(c *call, page, name string, data any) error {
	var part bytes.Buffer
	if err := d.pages[page].ExecuteTemplate(&part, name, data); err != nil {
		return fmt.Errorf("%s of page %s: %w", name, page, err)
	}

	c.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, err := c.w.Write(c.zone().localize(part.Bytes()))

	return err
}

// notices are what a page says after a form was carried out, by the word in its address.
// A link can choose among them, and cannot make a page say anything else.
var notices = map[string]string{
	"scored":     "The score is set.",
	"erased":     "The requests were deleted.",
	"signed-out": "You have signed out.",
	"password":   "Your password has been changed. All your other sessions have been signed out.",
	"revoked":    "The key is revoked. Calls with it are now rejected.",
	"uninvited":  "The invite is revoked. Its link no longer works.",
	"resumed":    "You are signed in again. Nothing has been sent yet: check your changes, then send them.",
	"other-person": "You signed in as someone else. The changes that were not sent yet belonged to " +
		"another person, and were discarded.",
	"no-cookie": "You signed in, but your browser did not keep the session's cookie. " +
		"Allow cookies for this site, and see whether this page names another reason.",
	"saved":      "Saved. Apps requesting the latest version get it within a second.",
	"unchanged":  "Nothing was changed, so no new version was created.",
	"label":      "The label now points to this version. Apps requesting it get it within a second.",
	"unlabelled": "The label was deleted.",
	"relabelled": "The label was created again, with a new ID.",
	"archived":   "The template is archived. Apps requesting it will get 404.",
	"restored":   "The template was restored.",
	"undone":     "Undone: it is as it was before.",
}

// redirect sends the browser on to another page, which shows the notice that word names;
// "" is none.
func (c *call) redirect(to, word string) error {
	if word != "" {
		to = withParameter(to, "done", word)
	}

	// See Other makes the browser fetch the page, and not send the form once more.
	http.Redirect(c.w, c.Request, to, http.StatusSeeOther)

	return nil
}

// withParameter returns an address with one more parameter.
func withParameter(to, name, value string) string {
	separator := "?"
	if strings.Contains(to, "?") {
		separator = "&"
	}

	return to + separator + url.Values{name: {value}}.Encode()
}

// exampleCurl returns a command that logs a call, for accounts without any.
func exampleCurl(base string) string {
	return "curl " + base + `/rest/track-request -H 'Content-Type: application/json' -d '{
  "api_key": "YOUR KEY", "function_name": "openai.ChatCompletion.create",
  "kwargs": {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Say hello."}]},
  "request_response": {"model": "gpt-4o-mini", "choices": [{"index": 0, "finish_reason": "stop",
    "message": {"role": "assistant", "content": "Hello!"}}],
    "usage": {"prompt_tokens": 10, "completion_tokens": 2}},
  "request_start_time": '$(date +%s)', "request_end_time": '$(date +%s)'}'`
}
