package dashboard

import (
	"errors"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"promptspool/api/wire"
)

// errorView is what the page of an error shows.
type errorView struct {
	Error *wire.Error
	Back  string // the page that the browser came from; "" if it came from elsewhere
}

// errStaleForm refuses a form that does not carry its session's token.
var errStaleForm = wire.Errorf(wire.CodeForbidden,
	"This form is out of date. Go back, load the page again, and send it once more.")

// errNoPage answers for an address that is no page's.
var errNoPage = wire.Errorf(wire.CodeNotFound,
	"There is no page at this address. It may have been mistyped, or the page was removed.")

// errorTitles name what went wrong, by its code.
var errorTitles = map[wire.Code]string{
	wire.CodeNotFound:     "Not found",
	wire.CodeMethod:       "Nothing to show here",
	wire.CodeTooLarge:     "Too large",
	wire.CodeUnauthorized: "Session expired",
	wire.CodeForbidden:    "No access",
	wire.CodeInvalid:      "Not accepted",
	wire.CodeConflict:     "Not possible now",
	wire.CodeTooMany:      "Too many attempts",
	wire.CodeUnavailable:  "The server is busy",
}

func errorTitle(err error) string {
	switch {
	case errors.Is(err, errStaleForm):
		return "Form out of date"
	case errors.Is(err, errNoPage):
		return "Page not found"
	}
	if title, known := errorTitles[wire.AsError(err).Code]; known {
		return title
	}
	return "Something went wrong"
}

// fail answers with what went wrong, and a way back.
func (d *Dashboard) fail(c *call, err error) {
	e := wire.AsError(err)
	if e.Status() >= 500 {
		d.Logger.Error("a page failed", "path", c.URL.Path, "error", err)
	}
	retryAfter(c.w.Header(), e)

	if failed := d.show(c, e.Status(), "error", errorTitle(err), "", errorView{e, back(c.Request)}); failed != nil {
		d.Logger.Error("the page that tells an error failed", "error", failed)
	}
}

// retryAfter tells a browser when to come back, if the error says so.
func retryAfter(h http.Header, e *wire.Error) {
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
	}
}

// Refuse answers with a page that shows an error, whoever is signed in or not.
func (d *Dashboard) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	secure(w.Header())
	c := &call{Request: r, w: w}
	if s, failed := d.session(r); failed == nil {
		c.SignedIn = s // for the menu
	}
	d.fail(c, err)
}

// nowhere answers for a path that is no page, or only takes forms.
func (d *Dashboard) nowhere(w http.ResponseWriter, r *http.Request) {
	allowed := d.methods(r.URL.Path)
	if len(allowed) == 0 || strings.HasPrefix(r.URL.Path, "/static/") {
		d.Refuse(w, r, errNoPage)
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	d.Refuse(w, r, wire.Errorf(wire.CodeMethod,
		"This address only takes what a form sends. Open the page with the form, and send it again."))
}

// foreign refuses a form that another site's page sent.
func (d *Dashboard) foreign(w http.ResponseWriter, r *http.Request) {
	d.Refuse(w, r, wire.Errorf(wire.CodeForbidden,
		"This form was sent from another site's page, so it was refused. Open the dashboard itself and try again."))
}

// back is the page of ours that a call came from; "" for none.
func back(r *http.Request) string {
	from, err := url.Parse(r.Referer())
	if err != nil || from.Host != r.Host || from.Path == "" || from.Path == r.URL.Path {
		return ""
	}
	return local(from.RequestURI())
}
