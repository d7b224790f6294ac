package dashboard

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	"promptspool/api/filterline"
	"promptspool/api/wire"
)

func (d *Dashboard) eraseRoutes() {
	d.handle("GET /requests/delete", wire.RoleOwner, d.erasePage)
	d.handle("POST /requests/delete", wire.RoleOwner, d.erase)
}

// eraseView is what the page shows that asks before records are deleted.
type eraseView struct {
	wire.Deletion
	Requests int64 // that would be deleted
	More     bool  // there are more of them than were counted
	Others   []eraseLink
	Filter   filter // of the list
	Back     string // its address
	Cancel   string // the address that the question came from
	Error    *wire.Error
}

// eraseLink leads to the page for all records with a metadata value of one.
type eraseLink struct{ Key, Value, Href string }

// eraseLinksMax bounds the values that are offered.
const eraseLinksMax = 20

// Counted describes what would be deleted.
func (v eraseView) Counted() string {
	text := quantity(v.Requests, "request")
	if v.More {
		return "more than " + text
	}

	return text
}

// erasePage shows what would be deleted, with its number. The page is the question before it.
func (d *Dashboard) erasePage(c *call) error {
	q := c.URL.Query()
	f := c.filter(q)
	v := eraseView{
		Filter:   f,
		Deletion: wire.Deletion{RequestID: q.Get("id"), Key: q.Get("key"), Value: q.Get("value")},
		Back:     f.requests(),
		Cancel:   f.requests(),
	}

	switch {
	case v.RequestID != "":
		r, err := d.Records.Request(c.Context(), c.identity(), v.RequestID)
		if err != nil {
			return err
		}
		v.Requests, v.Cancel = 1, address("/requests/"+r.RequestID, keepPlace(f.values(), q))
		for _, key := range slices.Sorted(maps.Keys(r.Metadata)) {
			if len(v.Others) < eraseLinksMax {
				v.Others = append(v.Others, eraseLink{key, r.Metadata[key], f.erasing("", key, r.Metadata[key])})
			}
		}
	case v.Key != "" && v.Value != "":
		if err := d.countErased(c, &v); err != nil {
			return err
		}
	}

	return d.show(c, http.StatusOK, "erase", "Delete requests", "requests", v)
}

// countErased counts by the condition that the deletion itself has.
func (d *Dashboard) countErased(c *call, v *eraseView) error {
	doomed := filter{}.with(filterline.Where("metadata", v.Key, v.Value))
	page, err := d.list(c.Context(), c, doomed, wire.Search{PerPage: 1})
	v.Requests, v.More = int64(page.Total), page.TotalIsLowerBound

	return err
}

// erasing returns the address of the question before one request is deleted, or all with a metadata
// value. It keeps the filter of the list.
func (f filter) erasing(id, key, value string) string {
	q := f.values()
	for name, text := range map[string]string{"id": id, "key": key, "value": value} {
		if text != "" {
			q.Set(name, text)
		}
	}

	return address("/requests/delete", q)
}

// Erase returns that address for one request, or without one.
func (f filter) Erase(id string) string { return f.erasing(id, "", "") }

// erase deletes what the page showed.
func (d *Dashboard) erase(c *call) error {
	form := wire.Deletion{RequestID: c.PostForm.Get("id")}
	if key, value := c.PostForm.Get("key"), c.PostForm.Get("value"); key != "" || value != "" {
		all, err := wire.DecodeDeletion(key, value, "")
		if err != nil {
			return err
		}
		form.Key, form.Value = all.Key, all.Value
	}
	deleted, err := d.Records.Delete(c.Context(), c.identity(), form)
	// One that broke off has deleted some for good.
	if err == nil || deleted.Records > 0 {
		// Even if the call's time is up.
		ctx := context.WithoutCancel(c.Context())
		err = errors.Join(err,
			d.People.Note(ctx, c.User, "delete requests", form.AuditTarget(), deleted.AuditDetail()))
	}
	if err != nil {
		return err
	}

	return d.offering(c, address("/requests", c.filter(c.PostForm).values()), "erased",
		undo{Kind: "erased", Now: deleted.AuditDetail()})
}
