package requests

import (
	"encoding/base64"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/conversation"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/wire"
)

// sentView is the value of the address's view in which texts are as they were sent.
const sentView = "sent"

// recordTexts returns the texts of a record's page.
func recordTexts(c *frame.Exchange, f filter.Filter, r wire.Record) *conversation.Texts {
	t := conversation.NewTexts(nil)
	// The values of the variables are marked in the prompt, and what was searched for anywhere.
	if r.Prompt != nil {
		t = conversation.NewTexts(r.Prompt.InputVariables)
	}
	sought := f.Sought()
	t.Mark(sought)
	t.Prose = true
	t.AsSent = c.URL.Query().Get("view") == sentView

	q := url.Values{}
	if len(sought) > 0 {
		q.Set("filter", f.Text)
	}
	if t.AsSent {
		q.Set("view", sentView)
	}
	t.At = "/requests/" + r.RequestID + "/text?" + q.Encode()

	return t
}

// toggled returns the address of a page with its texts the other way: laid out, or as sent.
func toggled(page *url.URL) string {
	if page.Query().Get("view") == sentView {
		return withParameter(page, "view", "")
	}

	return withParameter(page, "view", sentView)
}

// withParameter returns the address of a page with another value of a parameter; "" is none.
func withParameter(page *url.URL, name, value string) string {
	q := page.Query()
	q.Set(name, value)
	if value == "" {
		q.Del(name)
	}
	q.Del("done")

	return address.Of(page.Path, q)
}

// fromPiece returns the first piece of the messages that a page shows.
func fromPiece(page *url.URL) int {
	n, err := strconv.Atoi(page.Query().Get("piece"))
	if err != nil || n < 0 || n > math.MaxInt32 {
		return 0
	}

	return n
}

// withPiece returns the address of a page from another piece on.
func withPiece(page *url.URL, from int) string {
	if from <= 0 {
		return withParameter(page, "piece", "")
	}

	return withParameter(page, "piece", strconv.Itoa(from))
}

// keepPlace adds to a query the record's place in its list, and which page of a long conversation another
// query shows, and whether as sent.
func keepPlace(to, from url.Values) url.Values {
	for _, name := range []string{"cursor", "row", "n", "of", "piece", "view"} {
		if value := from.Get(name); value != "" {
			to.Set(name, value)
		}
	}

	return to
}

// recordText answers with one text of a record: with all of it as it is, or, for the
// page's script, with what replaces a folded one in the page.
func (p *pages) recordText(c *frame.Exchange) error {
	r, err := p.records.Request(c.Context(), c.Identity(), c.PathValue("id"))
	if err != nil {
		return err
	}

	q := c.URL.Query()
	request := r.Content()
	if event := q.Get("event"); event != "" {
		other := slices.IndexFunc(r.Conflicts, func(o wire.Conflict) bool { return o.EventID == event })
		if other < 0 {
			return errNoText
		}
		request = r.Conflicts[other].Request
	}

	var text string
	var prose, ok bool
	of := q.Get("of")
	again := logReplay(c.Base(), request)
	language, isProvider := strings.CutPrefix(of, "provider-")
	if isProvider {
		again = providerReplay(r)
	}
	switch {
	case isProvider || programs.Lookup(of) != nil:
		text, ok = again.program(language)
	case of == "variables":
		if r.Prompt != nil {
			text, ok = string(r.Prompt.InputVariables), true
		}
	default:
		read := conversation.Read(request)
		if image := read.Picture(of); image != "" {
			return sendImage(c, image)
		}
		text, prose, ok = read.Find(of)
	}
	if !ok {
		return errNoText
	}

	// The script shows longer texts by itself, which takes only the reader's time.
	if q.Get("as") != "html" || len(text) > conversation.WholeTextMax {
		return c.Send("text/plain; charset=utf-8", text)
	}

	return c.Part("record", "body", recordTexts(c, c.Filter(q), r).ShowWhole(text, prose))
}

// sendImage answers with an image that its reader has checked: PNG, JPEG, GIF or WebP as a data: URL.
func sendImage(c *frame.Exchange, image string) error {
	kind, data, _ := strings.Cut(strings.TrimPrefix(image, "data:"), ";base64,")
	// The padding is optional there.
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(data, "="))
	if err != nil {
		return errNoText
	}

	// The browser makes a page of it, with its own styles.
	c.W.Header().Set("Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox")

	return c.Send(kind, string(raw))
}

// errNoText answers for a text that a record does not have.
var errNoText = wire.Errorf(wire.CodeNotFound, "This request has no such text.")
