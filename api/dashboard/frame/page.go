package frame

import (
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"promptspool/api/access"
	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/number"
	"promptspool/api/dashboard/textdiff"
	"promptspool/api/wire"
)

// helpers are the functions that pages call.
var helpers = template.FuncMap{
	// Times.
	"moment":      moment,
	"ago":         ago,
	"ahead":       number.ClockOffset,
	"latency":     number.Latency,
	"latencyMS":   number.LatencyMS,
	"span":        number.Roughly,
	"spanSeconds": number.RoughlySeconds,

	// Numbers.
	"bytes":      number.Bytes,
	"cost":       number.Cost,
	"count":      number.Grouped,
	"digits":     strconv.Itoa,
	"dollars":    number.Dollars,
	"grouped":    func(n int) string { return number.Grouped(int64(n)) },
	"percent":    number.Percent,
	"plus":       func(a, b int) int { return a + b },
	"quantity":   func(n int, noun string) string { return number.Quantity(int64(n), noun) },
	"quantity64": number.Quantity,
	"tokens":     number.Tokens,

	// Addresses.
	"page":    address.Template,
	"segment": url.PathEscape,
	"session": address.Session,
	"where":   filter.RequestsWith,

	// Texts.
	"breakable": breakable,
	"compared":  newComparedRows,
	"invalid":   invalidField,
	"roleClass": roleClass,
	"rows":      textareaRows,
}

// invalidField returns the attributes of a form's field: those of one at fault if an error is about it. The
// browser goes to the field, and the component with the error, which is in the form, describes it.
func invalidField(err *wire.Error, name string) template.HTMLAttr {
	if err == nil || !slices.ContainsFunc(err.Fields, func(f wire.FieldError) bool { return f.Field == name }) {
		return ""
	}

	return `aria-invalid="true" aria-describedby="fault" autofocus`
}

// comparedRows are two texts side by side.
type comparedRows struct {
	Title, LeftTitle, RightTitle string
	Rows                         []textdiff.Row
}

func newComparedRows(title, left, right string, rows []textdiff.Row) comparedRows {
	return comparedRows{title, left, right, rows}
}

// textareaRows returns how many rows the field of a text gets: enough for most texts,
// whose lines wrap at about 80 letters.
func textareaRows(text string) int {
	return min(max(strings.Count(text, "\n")+len(text)/80+2, 3), 30)
}

// Title joins those parts of a page's title that are not empty, first what its tab is known by.
func Title(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " · ")
}

// breakable returns a name that a narrow page may break after its signs.
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
	if d < 0 {
		return "just now"
	}

	return number.Roughly(d) + " ago"
}

// view is what the layout shows around a page's own data.
type view struct {
	Title    string
	Nav      string // the current entry of the menu
	User     *wire.User
	CSRF     string
	Session  string // names the session, in forms that may be sent after its end
	Notice   string // what has just been done
	ByIssuer bool   // the person has no password here
	InNeed   int    // sidecars that need attention
	Undo     string // that, for the form that takes it back; "" if it cannot be
	Version  string
	Now      time.Time
	Base     string // this server's address
	CallsTo  string // where apps send their calls: the sidecar's address, or Base if none is known
	FirstKey string // the project's first key, while its founder's browser has it
	SignIn   bool   // people can sign in here
	Zone     shownZone
	Data     any

	Projects []wire.Membership // that the reader may open
}

// Several reports whether the reader may open more than one project.
func (v view) Several() bool { return len(v.Projects) > 1 }

// Back returns the page to show when another project is opened: of a list the same one there.
func (v view) Back() string {
	if slices.Contains([]string{"requests", "templates", "scores", "sidecars"}, v.Nav) {
		return "/" + v.Nav
	}
	return "/"
}

// May reports whether the reader may open a page or send a form, by its pattern.
func (v view) May(pattern string) bool {
	return v.User != nil && v.User.Role.Includes(access.Role(pattern))
}
