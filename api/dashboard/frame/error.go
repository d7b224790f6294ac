package frame

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"

	"promptspool/api/wire"
)

// errorView is what the error page shows.
type errorView struct {
	Error *wire.Error
	Back  string // the page that the browser came from; "" if it came from elsewhere
}

// errStaleForm rejects a form that does not carry its session's token.
var errStaleForm = wire.Errorf(wire.CodeForbidden,
	"This form is out of date. Go back, load the page again, and send it once more.")

// ErrNoPage answers for an address that is not a page.
var ErrNoPage = wire.Errorf(wire.CodeNotFound,
	"There is no page at this address. It may have been mistyped, or the page was removed.")

// errorTitles are the titles of the error page, by code.
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
	case errors.Is(err, ErrNoPage):
		return "Page not found"
	}

	if title, known := errorTitles[wire.AsError(err).Code]; known {
		return title
	}

	return "Something went wrong"
}

// fail answers with an error page, which offers a way back.
func (c *Exchange) fail(err error) {
	// Other errors are the reader's, who finds them explained on the page.
	e := wire.AsError(err)
	if e.Status() >= 500 {
		c.frame.Logger.Error("a page failed", "path", c.URL.Path, "error", err)
	}

	setRetryAfter(c.W.Header(), e)
	v := errorView{e, c.previousPage()}
	if showErr := c.Show(e.Status(), "error", errorTitle(err), "", v); showErr != nil {
		c.frame.Logger.Error("the error page failed", "error", showErr)
	}
}

// setRetryAfter tells the browser when to try again, if the error knows.
func setRetryAfter(h http.Header, e *wire.Error) {
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
	}
}

// Refuse answers with an error page. It needs no session.
func (f *Frame) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	// Other handlers call this too, for which ServeHTTP has not set the headers.
	f.setSecurityHeaders(w.Header())
	w = f.below(w)

	c := &Exchange{Request: r, W: w, frame: f}
	c.FindReader()
	c.fail(err)
}

// notFound answers for a path that is not a page, or that only accepts forms.
func (f *Frame) notFound(w http.ResponseWriter, r *http.Request) {
	// The path of a form may be opened as an address, for example from the history.
	allowed := f.methods(r.URL.Path)
	for folder := range f.files {
		if strings.HasPrefix(r.URL.Path, folder) {
			allowed = nil // a file that is not there
		}
	}
	if len(allowed) == 0 {
		f.Refuse(w, r, ErrNoPage)
		return
	}

	w.Header().Set("Allow", strings.Join(allowed, ", "))
	f.Refuse(w, r, wire.Errorf(wire.CodeMethod,
		"This address only accepts a form. Open the page with the form, and send it again."))
}

// refuseCrossSite rejects a form that another site's page sent.
func (f *Frame) refuseCrossSite(w http.ResponseWriter, r *http.Request) {
	f.Refuse(w, r, wire.Errorf(wire.CodeForbidden,
		"This form was sent from another site's page, so it was rejected. "+
			"Open the dashboard itself and try again."))
}

// previousPage returns the page of ours that the request came from, or "".
func (c *Exchange) previousPage() string {
	from := c.referer()
	if from == nil || from.Path == "" || from.Path == c.URL.Path {
		return "" // "Back" would lead to the same error
	}

	return localAddress(from.RequestURI())
}
