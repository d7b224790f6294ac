package overview

import (
	"net/http"
	"time"

	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/table"
	"promptspool/api/wire"
)

// Retention limits what the server keeps of each account. Zero values mean no limit.
type Retention struct {
	Age   time.Duration
	Bytes int64 // of bodies, uncompressed
}

// sidecarsView is what the page of sidecars shows.
type sidecarsView struct {
	Order     table.Order
	Items     []wire.FleetSidecar
	Alive     int
	Waiting   int64       // events in all spools
	InNeed    int         // sidecars that need attention
	Server    []wire.Drop // by this server itself, today
	Kept      wire.Kept
	Retention Retention
}

// sidecarColumns are what the sidecars can be sorted by.
var sidecarColumns = table.Columns[wire.FleetSidecar]{
	"seen":   func(s *wire.FleetSidecar) float64 { return table.At(&s.LastSeen) },
	"queued": func(s *wire.FleetSidecar) float64 { return float64(s.BacklogEvents) },
	"bytes":  func(s *wire.FleetSidecar) float64 { return float64(s.BacklogBytes) },
	"oldest": func(s *wire.FleetSidecar) float64 { return s.OldestSeconds },
	"held":   func(s *wire.FleetSidecar) float64 { return float64(s.HeldEvents) },
	"dead":   func(s *wire.FleetSidecar) float64 { return float64(s.DeadLetters + s.Dropped) },
	"lost":   func(s *wire.FleetSidecar) float64 { return float64(s.LostEvents) },
	"clock":  func(s *wire.FleetSidecar) float64 { return table.OrNaN(s.ClockAhead) },
}

func (p *pages) sidecarsPage(c *frame.Exchange) error {
	fleet, err := c.Fleet()
	if err != nil {
		return err
	}

	v := sidecarsView{Items: fleet.Items, InNeed: fleet.InNeed(), Server: fleet.DroppedToday, Retention: p.retention}
	for _, s := range fleet.Items {
		if s.Alive {
			v.Alive++
		}
		v.Waiting += s.BacklogEvents
	}

	v.Order = table.Read("/sidecars", c.URL.Query())
	table.Sort(v.Order, v.Items, sidecarColumns)
	if v.Kept, err = p.records.Kept(c.Context(), c.Identity()); err != nil {
		return err
	}

	return c.Show(http.StatusOK, "sidecars", "Sidecars", "sidecars", v)
}
