package dashboard

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// listView is how somebody wants to see lists of requests. The browser keeps it in a cookie.
type listView struct {
	Columns []string // names of columns
	Compact bool     // rows are low
}

// listCookie holds a listView, as names with dots between them.
const listCookie = "list"

// listViewKept is how long a browser keeps it after it was last changed.
const listViewKept = 400 * 24 * time.Hour // the most that browsers allow

// compactWord stands among the names in the cookie.
const compactWord = "compact"

// listView returns how the reader wants to see this list. Columns in the address win: somebody sent
// it to show them.
func (c *call) listView(f filter) listView {
	v := listView{Columns: defaultColumns()}
	if cookie, err := c.Cookie(listCookie); err == nil {
		names := strings.Split(cookie.Value, ".")
		v.Compact = slices.Contains(names, compactWord)
		if chosen := namedColumns(names); chosen != nil {
			v.Columns = chosen
		}
	}
	if f.Columns != nil {
		v.Columns = f.Columns
	}

	return v
}

// Shows reports whether a list shows a column.
func (v listView) Shows(name string) bool { return slices.Contains(v.Columns, name) }

// shown returns the columns that a list shows.
func (v listView) shown() []column {
	return slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return !v.Shows(c.Name) })
}

// rememberView keeps what the form asks for, and shows the list again. Its address names the columns
// unless they are the usual ones, so that others see the same.
func (d *Dashboard) rememberView(c *call) error {
	f := readFilter(c.PostForm)
	if slices.Equal(f.Columns, defaultColumns()) {
		f.Columns = nil // those of a later version, if they change
	}
	words := slices.Clone(f.Columns)
	if c.PostForm.Get("density") == compactWord {
		words = append(words, compactWord)
	}

	cookie := d.cookie // with the same path, and over TLS only where sessions are
	cookie.Name, cookie.Value = listCookie, strings.Join(words, ".")
	cookie.MaxAge = int(listViewKept.Seconds())
	http.SetCookie(c.w, &cookie)

	return c.redirect(f.requests(), "")
}
