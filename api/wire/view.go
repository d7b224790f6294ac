package wire

import (
	"context"
	"net/url"
	"slices"
	"strings"
)

// Bounds of saved views.
const (
	ViewsMax       = 100 // of a project, and of each of its people
	ViewNameMax    = 100 // characters
	ViewAddressMax = 4000
)

// ViewPaths are the pages of the dashboard that a view can be of.
var ViewPaths = []string{"/", "/requests", "/traces", "/sessions", "/users", "/template/statistics"}

// passing are the parameters of a page that a view does not keep: a place in its list, what was just done,
// the view that it was opened from.
var passing = []string{"all", "cursor", "csrf", "done", "n", "named", "of", "project", "row", "undo"}

// View is a page of the dashboard under a name: its filter, columns, order and time.
type View struct {
	// The name, by which alert rules and commands find it. To save a view, it is in the path.
	Name string `json:"name,omitempty" read:"name" jsonschema:"maxLength=100"`
	// The page's address without the server: its path and its query.
	Address string `json:"address" jsonschema:"maxLength=4000"`
	// Own is set for a view that only the person sees who saved it. It is the project's otherwise.
	Own bool `json:"-"`
}

// Views keeps the views of a project, and those of its people. It is safe for concurrent use.
type Views interface {
	// Views returns the project's views, then those of the person that id is, each sorted by name.
	Views(ctx context.Context, id Identity) ([]View, error)

	// PutView saves a view, in place of the one with this name and Own. CodeConflict if there are ViewsMax.
	PutView(ctx context.Context, id Identity, v View) error

	// RemoveView removes the view with this name and Own. CodeNotFound if there is none.
	RemoveView(ctx context.Context, id Identity, v View) error
}

// ViewList answers GET /api/public/v2/views.
type ViewList struct {
	Success bool   `json:"success"`
	Items   []View `json:"items"` // the project's, sorted by name
}

// check finds a fault in a view without a name, or whose address is not one of a page in ViewPaths. It leaves
// out of the address what a view does not keep.
func (v *View) check(f *fields) {
	f.checkName(v.Name)
	f.bound("name", v.Name, ViewNameMax)

	path, query, _ := strings.Cut(v.Address, "?")
	q, err := url.ParseQuery(query)
	if err != nil || !slices.Contains(ViewPaths, path) {
		f.fault("address", "must be the path of one of the pages %s, with its query", strings.Join(ViewPaths, ", "))
	}
	for _, name := range passing {
		q.Del(name)
	}
	v.Address = path
	if len(q) > 0 {
		v.Address += "?" + q.Encode()
	}
	f.bound("address", v.Address, ViewAddressMax)
}

// Path returns the path of the view's page.
func (v View) Path() string {
	path, _, _ := strings.Cut(v.Address, "?")
	return path
}

// Query returns the parameters of the view's page, such as its filter line.
func (v View) Query() url.Values {
	_, query, _ := strings.Cut(v.Address, "?")
	q, _ := url.ParseQuery(query) // Check has read it
	return q
}

// Filter returns the filter line of the view; "" finds everything.
func (v View) Filter() string { return v.Query().Get("filter") }
