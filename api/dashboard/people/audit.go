package people

import (
	"net/http"

	"promptspool/api/dashboard/frame"
	"promptspool/api/wire"
)

const auditPageMax = 50

// auditView is what the page of the audit log shows.
type auditView struct {
	Entries []wire.AuditEntry
	Older   string // the next page holds the entries before this id; "" on the last page
}

func (p *pages) auditPage(c *frame.Exchange) error {
	// One entry more than a page holds shows whether there is another page.
	entries, err := p.people.AuditLog(c.Context(), c.User, c.FormValue("before"), auditPageMax+1)
	if err != nil {
		return err
	}

	v := auditView{Entries: entries}
	if len(entries) > auditPageMax {
		v.Entries, v.Older = entries[:auditPageMax], entries[auditPageMax-1].ID
	}

	// Together, because the keys are read once for each request.
	var actors []*string
	for i := range v.Entries {
		actors = append(actors, &v.Entries[i].Actor)
	}
	if err := c.NameKeys(actors...); err != nil {
		return err
	}

	return c.Show(http.StatusOK, "audit", "Audit log", "audit", v)
}
