package people

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/frame"
	"promptspool/api/wire"
)

const (
	auditPageMax = 50
	auditStep    = 500    // entries that are read at a time
	auditReadMax = 20_000 // entries that one page looks at
)

// auditView is what the page of the audit log shows.
type auditView struct {
	Typed   url.Values // the filter
	Entries []wire.AuditEntry
	Older   string // address of the next page; "" on the last page
	Export  string // address of everything that the filter finds
	Error   *wire.Error
}

// auditFilter narrows down the audit log.
type auditFilter struct {
	text         string // in any column, in lower case
	since, until time.Time
}

// readAuditFilter reads the filter in an address. Its dates are days in the reader's zone.
func readAuditFilter(c *frame.Exchange) (f auditFilter, err error) {
	f.text = strings.ToLower(strings.TrimSpace(c.FormValue("q")))
	for name, at := range map[string]*time.Time{"since": &f.since, "until": &f.until} {
		day := c.FormValue(name)
		if day == "" {
			continue
		}
		*at, err = time.ParseInLocation(time.DateOnly, day, c.Filter(nil).Zone())
		if err != nil {
			return f, wire.Invalid(wire.FieldError{Field: name, Reason: "must be a date such as 2026-11-24"})
		}
	}
	if !f.until.IsZero() {
		// The whole day counts.
		f.until = f.until.AddDate(0, 0, 1)
	}

	return f, nil
}

// finds reports whether the filter finds an entry, whose keys are named already.
func (f *auditFilter) finds(e *wire.AuditEntry) bool {
	columns := strings.Join([]string{e.Actor, e.Action, e.Target, e.Detail, e.From}, "\n")
	return strings.Contains(strings.ToLower(columns), f.text)
}

// readAudit calls take with what the filter finds, newest first, from below the id before
// ("" for the newest), until take returns false or most entries were read. It returns the
// last id that it looked at; "" if there is no older one.
func (p *pages) readAudit(
	c *frame.Exchange, f auditFilter, before string, most int,
	take func(wire.AuditEntry) (more bool, err error),
) (last string, err error) {
	if before == "" && !f.until.IsZero() {
		before = wire.NewIDAt(f.until)
	}

	for read := 0; read < most; read += auditStep {
		entries, err := p.people.AuditLog(c.Context(), c.User, before, auditStep)
		if err != nil {
			return "", err
		}
		// Together, because the keys are read once for each step.
		var actors []*string
		for i := range entries {
			actors = append(actors, &entries[i].Actor)
		}
		if err := c.NameKeys(actors...); err != nil {
			return "", err
		}

		for i := range entries {
			before = entries[i].ID
			if entries[i].At.Before(f.since) {
				return "", nil
			}
			if !f.finds(&entries[i]) {
				continue
			}
			if more, err := take(entries[i]); !more || err != nil {
				return before, err
			}
		}
		if len(entries) < auditStep {
			return "", nil
		}
	}

	return before, nil
}

func (p *pages) auditPage(c *frame.Exchange) error {
	query := url.Values{}
	for _, name := range []string{"q", "since", "until"} {
		if value := c.FormValue(name); value != "" {
			query.Set(name, value)
		}
	}
	v := auditView{Typed: query, Export: address.Of("/audit/export", query)}
	f, err := readAuditFilter(c)
	if err != nil {
		v.Error = wire.AsError(err)
		return c.Show(v.Error.Status(), "audit", "Audit log", "audit", v)
	}

	last, err := p.readAudit(c, f, c.FormValue("before"), auditReadMax,
		func(e wire.AuditEntry) (bool, error) {
			v.Entries = append(v.Entries, e)
			return len(v.Entries) < auditPageMax, nil
		})
	if err != nil {
		return err
	}
	if last != "" {
		query.Set("before", last)
		v.Older = address.Of("/audit", query)
	}

	title := frame.Title(query.Get("q"), query.Get("since"), query.Get("until"), "Audit log")

	return c.Show(http.StatusOK, "audit", title, "audit", v)
}

// exportAudit answers with everything that the filter finds, one JSON object a line.
func (p *pages) exportAudit(c *frame.Exchange) error {
	f, err := readAuditFilter(c)
	if err != nil {
		return err
	}
	if err := c.Note(c.Context(), "export audit log", "jsonl", f.text); err != nil {
		return err
	}

	write := func(ctx context.Context, w io.Writer) error {
		// The request's own context has ended by now.
		later := *c
		later.Request = c.WithContext(ctx)
		lines := json.NewEncoder(w)
		lines.SetEscapeHTML(false)
		_, err := p.readAudit(&later, f, "", int(wire.AuditMost),
			func(e wire.AuditEntry) (bool, error) { return true, lines.Encode(e) })
		return err
	}

	return c.SendFile("audit-"+c.Now().UTC().Format(time.DateOnly)+".jsonl", "application/x-ndjson", write)
}
