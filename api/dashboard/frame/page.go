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
	"page":        address.Template,
	"segment":     url.PathEscape,
	"session":     address.Session,
	"viewAddress": ViewAddress,
	"where":       filter.RequestsWith,

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
	Version  string
	Now      time.Time
	Base     string // this server's address
	CallsTo  string // where apps send their calls: the sidecar's address, or Base if none is known
	FirstKey string // the project's first key, while its founder's browser has it
	SignIn   bool   // people can sign in here
	Zone     shownZone
	Data     any

	Projects []wire.Membership // that the reader may open

	Here  string // the page as a saved view has it
	Named string // the view that it was opened from, as its address says
	Views []wire.View
}

// menuViewsMax bounds the views in the menu. The page of all views has the rest.
const menuViewsMax = 8

// MenuViews returns the views that the menu shows.
func (v view) MenuViews() []wire.View { return v.Views[:min(len(v.Views), menuViewsMax)] }

// Opened returns the saved view that the page was opened from, perhaps with changes; the zero View if there is
// none.
func (v view) Opened() (opened wire.View) {
	for _, saved := range v.Views {
		if saved.Name == v.Named && saved.Path() == (wire.View{Address: v.Here}).Path() {
			opened = saved
		}
	}

	return opened
}

// ViewAddress returns the address of a saved view.
func ViewAddress(v wire.View) string { return address.With(v.Address, "named", v.Name) }

// Several reports whether the reader may open more than one project.
func (v view) Several() bool { return len(v.Projects) > 1 }

// Back returns the page to show when another project is opened: of a list the same one there.
func (v view) Back() string {
	if slices.Contains([]string{"requests", "templates", "scores", "alerts", "sidecars"}, v.Nav) {
		return "/" + v.Nav
	}
	return "/"
}

// May reports whether the reader may open a page or send a form, by its pattern.
func (v view) May(pattern string) bool {
	return v.User != nil && v.User.Role.Includes(access.Role(pattern))
}

const (
	// countingMax is how long a page waits for requests that must be counted one by one
	// because of its filter.
	countingMax = 40 * time.Millisecond

	// patientMax is the same for readers who asked to count everything.
	patientMax = 20 * time.Second
)

// countAll is the parameter of an address that asks to count everything.
const countAll = "all"

func (c *Exchange) countsAll() bool { return c.URL.Query().Has(countAll) }

// Bounded bounds the time of a query to what a reader of the page waits for.
func (c *Exchange) Bounded(q wire.StatisticsQuery) wire.StatisticsQuery {
	q.Budget = countingMax
	if c.countsAll() {
		q.Budget = patientMax
	}
	q.Brief = true

	return q
}

// Counted is how much of a page's requests its numbers cover.
type Counted struct {
	wire.Progress
	Everything string // the address that waits for all of them, or ""
}

// Counted describes how much of an answer has been counted for the page at a path.
func (c *Exchange) Counted(path string, progress wire.Progress) Counted {
	counted := Counted{Progress: progress}
	if progress.Incomplete && !c.countsAll() {
		everything := c.URL.Query()
		everything.Set(countAll, "1")
		counted.Everything = address.Of(path, everything)
	}

	return counted
}

// Mark returns what follows a number that will grow when everything is counted.
func (c Counted) Mark() string {
	if c.Incomplete {
		return "+"
	}

	return ""
}

// Count prints a number of requests or tokens.
func (c Counted) Count(n int64) string { return number.Grouped(n) + c.Mark() }

// Brief prints a number of requests or tokens with three digits.
func (c Counted) Brief(n int64) string { return number.Brief(n) + c.Mark() }

// Dollars prints an amount of money.
func (c Counted) Dollars(x float64) string { return number.Dollars(x) + c.Mark() }
