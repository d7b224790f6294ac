package render

import (
	"cmp"
	"encoding/json"
)

// Anew is Kwargs without plans.
func (p *Prepared) Anew(c Call) (json.RawMessage, []string, error) {
	return p.kwargs(cmp.Or(c.Provider, p.model.Provider), c)
}

// Planned reports whether Kwargs answers a call by a plan.
func (p *Prepared) Planned(c Call) bool {
	pl := p.plan(planKey{cmp.Or(c.Provider, p.model.Provider), c.Model, c.Variables != nil})
	if pl == nil || len(c.Overrides) > 0 {
		return false
	}
	_, ok := pl.fill(c)
	return ok
}
