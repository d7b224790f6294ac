package frame

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/filter"
	"promptspool/api/wire"
)

// Exchange is one HTTP request for a page and its answer, with the caller's session.
type Exchange struct {
	*http.Request
	W http.ResponseWriter
	wire.SignedIn
	frame *Frame

	// Here is the address that a saved view of the page has; "" is that of the request.
	Here string
}

// Identity returns the identity that the request's reads and writes are made with.
func (c *Exchange) Identity() wire.Identity {
	return c.IdentityIn(wire.Membership{AccountID: c.User.AccountID})
}

// IdentityIn returns the identity of a reader in one of their projects.
func (c *Exchange) IdentityIn(m wire.Membership) wire.Identity {
	return wire.Identity{
		Account:  m.AccountID,
		KeyID:    "user:" + c.User.ID,
		Scope:    wire.ScopeFull,
		Verified: true,
	}
}

// Now returns the time of the server.
func (c *Exchange) Now() time.Time { return c.frame.Now() }

// Filter reads the filter in an address, in the reader's zone.
func (c *Exchange) Filter(q url.Values) filter.Filter {
	return filter.Read(q, c.Now(), c.zone().Location)
}

// Walk returns the trail of a trace or a session. Its query has the list that it was opened from.
func (c *Exchange) Walk(list, path, id string, q url.Values) filter.Trail {
	opened, _ := url.ParseQuery(q.Get(filter.OpenedFrom))
	f := c.Filter(opened).OfRollups(opened)

	return f.Walk(list, path, filter.ReadPlace(id, opened), nil)
}

// Step leads to the row beside the one at a place, as the address asks. There are so many rows after the place's
// cursor. At an end of the list it leads back to the row, and says so.
func (c *Exchange) Step(at filter.Place, rows int, id func(i int) string, page func(filter.Place) string) error {
	to := at.Step(c.URL.Query().Get("step"), rows, id)
	if to.ID == "" {
		return c.Redirect(page(at), "at-end")
	}
	return c.Redirect(page(to), "")
}

// Note writes what the request did into the account's audit log.
func (c *Exchange) Note(ctx context.Context, action, target, detail string) error {
	return c.frame.People.Note(ctx, c.User, action, target, detail)
}

// Done notes a change in the account's audit log, and sends the browser on as Redirect does.
func (c *Exchange) Done(action, target, detail, to, word string) error {
	if err := c.Note(c.Context(), action, target, detail); err != nil {
		return err
	}

	return c.Redirect(to, word)
}

// Correctable returns an error that a form shows, so that the reader can correct it; nil for any other one.
func Correctable(err error) *wire.Error {
	if !wire.IsCode(err, wire.CodeInvalid) && !wire.IsCode(err, wire.CodeConflict) {
		return nil
	}

	return wire.AsError(err)
}

// Remove answers a form by removing what its path names.
func (c *Exchange) Remove(
	by func(ctx context.Context, id wire.Identity, name string) error, action, to, word string,
) error {
	name := c.PathValue("id")
	if err := by(c.Context(), c.Identity(), name); err != nil {
		return err
	}
	return c.Done(action, name, "", to, word)
}

// Show answers with a page. It is rendered before the first byte is sent, so that a
// failure can still be answered with the error page. nav names the entry of the menu.
func (c *Exchange) Show(status int, name, title, nav string, data any) error {
	f := c.frame
	v := view{
		Title:   title,
		Nav:     nav,
		Notice:  f.notices[c.URL.Query().Get("done")],
		Version: f.Version,
		Now:     f.Now(),
		Base:    c.Base(),
		CallsTo: cmp.Or(f.SidecarURL, c.Base()),
		SignIn:  f.People != nil,
		Zone:    c.zone(),
		Data:    data,
	}
	// There is no session on the pages to sign in, and perhaps on an error page.
	if c.User.ID != "" {
		v.User, v.CSRF, v.Session, v.Projects = &c.User, c.CSRF(), c.FormSession(), c.Projects()
		v.ByIssuer, v.InNeed = c.ByIssuer, c.inNeed()
		v.FirstKey = c.firstKey()
		v.Here, v.Named = cmp.Or(c.Here, c.URL.RequestURI()), c.URL.Query().Get("named")
		// The page is about something else than the views in its menu.
		v.Views, _ = f.Views.Views(c.Context(), c.Identity())
	}

	return c.render(status, name, "layout", v)
}

// Part answers with one template of a page, for the page's script to insert.
func (c *Exchange) Part(page, name string, data any) error {
	return c.render(http.StatusOK, page, name, data)
}

// render answers with one template of a page.
func (c *Exchange) render(status int, page, name string, data any) error {
	var html bytes.Buffer
	if err := c.frame.pages[page]().ExecuteTemplate(&html, name, data); err != nil {
		return fmt.Errorf("%s of page %s: %w", name, page, err)
	}

	c.W.Header().Set("Content-Type", "text/html; charset=utf-8")
	c.W.WriteHeader(status)
	_, err := c.W.Write(c.zone().localize(html.Bytes()))

	return err
}

// Send answers with a text of another type.
func (c *Exchange) Send(contentType, content string) error {
	c.W.Header().Set("Content-Type", contentType)
	_, err := io.WriteString(c.W, content)

	return err
}

// SendFile answers with a file to save, which write writes as it comes. An error of write
// cuts the connection, so that a part is not taken for the whole.
func (c *Exchange) SendFile(
	name, mediaType string, write func(ctx context.Context, w io.Writer) error,
) error {
	// The server streams long answers after the handler has returned, within bounds.
	streamer, streams := c.Writer().(interface {
		Stream(owner string, write func(ctx context.Context, w io.Writer) error) error
	})
	if streams {
		if err := streamer.Stream(c.Identity().KeyID, write); err != nil {
			return err
		}
	}

	c.W.Header().Set("Content-Type", mediaType)
	c.W.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	if streams {
		return nil
	}

	return write(c.Context(), c.W)
}

// Redirect sends the browser on to another page, which shows the notice that word names;
// "" is none.
func (c *Exchange) Redirect(to, word string) error {
	if word != "" {
		to = address.With(to, "done", word)
	}

	// See Other makes the browser fetch the page, and not send the form once more.
	http.Redirect(c.W, c.Request, to, http.StatusSeeOther)

	return nil
}

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
		// "Back" would lead to the same error.
		return ""
	}

	return localAddress(from.RequestURI())
}
