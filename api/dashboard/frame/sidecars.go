package frame

import (
	"context"
	"time"

	"promptspool/api/wire"
)

// Sidecars reports the state of an account's sidecars.
type Sidecars interface {
	Fleet(ctx context.Context, id wire.Identity) (wire.Fleet, error)
}

// inNeed is how many sidecars of an account need attention.
type inNeed struct {
	count int
	asOf  time.Time
}

// Fleet reads the project's sidecars, and remembers for the menu how many need attention.
func (c *Exchange) Fleet() (wire.Fleet, error) {
	fleet, err := c.frame.Sidecars.Fleet(c.Context(), c.Identity())
	c.frame.inNeed.Store(c.User.AccountID, inNeed{fleet.InNeed(), c.Now()})

	return fleet, err
}

// inNeed returns how many sidecars need attention. It does not read all of them for each page.
func (c *Exchange) inNeed() int {
	known, _ := c.frame.inNeed.Load(c.User.AccountID)
	if n, ok := known.(inNeed); ok && c.Now().Sub(n.asOf) < wire.HeartbeatEvery {
		return n.count
	}

	fleet, _ := c.Fleet() // the page is about something else
	return fleet.InNeed()
}
