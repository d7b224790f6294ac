package dashboard

import (
	"net/url"
	"slices"

	"promptspool/api/wire"
)

// sentView is the value of the address's view in which texts are as they were sent.
const sentView = "sent"

// recordTexts returns the texts of a record's page.
func (c *call) recordTexts(f filter, r wire.Record) *texts {
	t := newTexts(nil)
	// The values of the variables are marked in the prompt, and what was searched for anywhere.
	if r.Prompt != nil {
		t = newTexts(r.Prompt.InputVariables)
	}
	t.hits = f.searched()
	t.prose = true
	t.asSent = c.URL.Query().Get("view") == sentView

	q := url.Values{}
	if len(t.hits) > 0 {
		q.Set("filter", f.Text)
	}
	if t.asSent {
		q.Set("view", sentView)
	}
	t.at = "/requests/" + r.RequestID + "/text?" + q.Encode()

	return t
}

// toggled returns the address of a page with its texts the other way: laid out, or as sent.
func toggled(page *url.URL) string {
	q := page.Query()
	if q.Get("view") == sentView {
		q.Del("view")
	} else {
		q.Set("view", sentView)
	}
	q.Del("done")

	return address(page.Path, q)
}

// alsoAsSent returns the address of another record, with its texts as this one's.
func alsoAsSent(to string, asSent bool) string {
	page, err := url.Parse(to)
	if to == "" || !asSent || err != nil {
		return to
	}

	return toggled(page)
}

// recordText answers with one text of a record: with all of it as it is, or, for the page's
// script, with what stands in the page instead of a folded one.
func (d *Dashboard) recordText(c *call) error {
	r, err := d.Records.Request(c.Context(), c.identity(), c.PathValue("id"))
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
	switch of := q.Get("of"); of {
	case "curl":
		text, ok = replayCurl(d.base(c.Request), request), true
	case "python":
		text, ok = replayPython(d.base(c.Request), request), true
	case "variables":
		if r.Prompt != nil {
			text, ok = string(r.Prompt.InputVariables), true
		}
	default:
		read := d.Read(request)
		text, prose, ok = read.find(of)
	}
	if !ok {
		return errNoText
	}

	// The script shows longer texts by itself, which takes nobody's time but the reader's.
	if q.Get("as") != "html" || len(text) > wholeTextMax {
		return sendText(c, "text/plain; charset=utf-8", text)
	}

	return d.part(c, "record", "body", c.recordTexts(c.filter(q), r).showWhole(text, prose))
}

// errNoText answers for a text that a record does not have.
var errNoText = wire.Errorf(wire.CodeNotFound, "This request has no such text.")
