package requests

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/number"
	"promptspool/api/filterline"
	"promptspool/api/wire"
)

// eraseView is what the page shows that asks before records are deleted.
type eraseView struct {
	wire.Deletion
	Requests int64 // that would be deleted
	More     bool  // there are more of them than were counted
	Others   []eraseLink
	In       string        // the list that has them
	Filter   filter.Filter // of the list
	Back     string        // its address
	Cancel   string        // the address that the question came from
	Error    *wire.Error
}

// eraseLink leads to the page for all records with a metadata value of one.
type eraseLink struct{ Key, Value, Href string }

// eraseLinksMax bounds the values that are offered.
const eraseLinksMax = 20

// Counted describes what would be deleted.
func (v eraseView) Counted() string {
	text := number.Quantity(v.Requests, "request")
	if v.More {
		return "at least " + text
	}

	return text
}

// erasePage shows what would be deleted, with its number. The page is the question before it.
func (p *pages) erasePage(c *frame.Exchange) error {
	q := c.URL.Query()
	f := c.Filter(q)
	v := eraseView{
		Filter: f,
		Deletion: wire.Deletion{
			RequestID: q.Get("id"),
			SessionID: q.Get("session_id"),
			Key:       q.Get("key"),
			Value:     q.Get("value"),
		},
		Back:   f.Requests(),
		Cancel: f.Requests(),
	}

	switch {
	case v.RequestID != "":
		r, err := p.records.Request(c.Context(), c.Identity(), v.RequestID)
		if err != nil {
			return err
		}
		v.Requests, v.Cancel = 1, address.Of("/requests/"+r.RequestID, keepPlace(f.Values(), q))
		for _, key := range slices.Sorted(maps.Keys(r.Metadata)) {
			if len(v.Others) < eraseLinksMax {
				v.Others = append(v.Others, eraseLink{key, r.Metadata[key], eraseAddress(f, key, r.Metadata[key])})
			}
		}
	case v.SessionID != "":
		v.Cancel = address.Session(v.SessionID)
		if err := p.countErased(c, &v, filterline.Where("session", "", v.SessionID)); err != nil {
			return err
		}
	case v.Key != "" && v.Value != "":
		if err := p.countErased(c, &v, filterline.Where("metadata", v.Key, v.Value)); err != nil {
			return err
		}
	}

	return c.Show(http.StatusOK, "erase", "Delete requests", "requests", v)
}

// countErased counts by the condition that the deletion itself has.
func (p *pages) countErased(c *frame.Exchange, v *eraseView, condition filterline.Term) error {
	doomed := c.Filter(nil).With(condition)
	page, err := doomed.List(c.Context(), p.records, c.Identity(), wire.Search{PerPage: 1})
	v.Requests, v.More, v.In = int64(page.Total), page.TotalIsLowerBound, doomed.Requests()

	return err
}

// eraseAddress returns the address of the question before all requests with a metadata
// value are deleted, or to choose that value. It keeps the filter of the list.
func eraseAddress(f filter.Filter, key, value string) string {
	q := f.Values()
	for name, text := range map[string]string{"key": key, "value": value} {
		if text != "" {
			q.Set(name, text)
		}
	}

	return address.Of("/requests/delete", q)
}

// erase deletes what the page showed.
func (p *pages) erase(c *frame.Exchange) error {
	form := wire.Deletion{RequestID: c.PostForm.Get("id"), SessionID: c.PostForm.Get("session_id")}
	if key, value := c.PostForm.Get("key"), c.PostForm.Get("value"); key != "" || value != "" {
		// Both, so that a slip deletes nothing.
		if key == "" || value == "" {
			return wire.Invalid(wire.FieldError{Field: "value", Reason: "and key must both be given"})
		}
		form.Key, form.Value = key, value
	}
	deleted, err := p.records.Delete(c.Context(), c.Identity(), form)
	// One that broke off has deleted some for good.
	if err == nil || deleted.Records > 0 {
		// Even if the request's time is up.
		ctx := context.WithoutCancel(c.Context())
		err = errors.Join(err,
			c.Note(ctx, "delete requests", form.AuditTarget(), deleted.AuditDetail()))
	}
	if err != nil {
		return err
	}

	return c.Offer(address.Of("/requests", c.Filter(c.PostForm).Values()), "erased",
		frame.Undo{Kind: "erased", Now: deleted.AuditDetail()})
}
