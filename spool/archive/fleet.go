package archive

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"promptspool/api/wire"
)

// Bounds of an account's fleet.
const (
	FleetMax  = 10_000
	FleetKept = 30 * 24 * time.Hour // a sidecar that is silent for longer is forgotten
)

// ErrFleetFull refuses one more sidecar while FleetMax are alive.
func ErrFleetFull() error {
	return wire.Errorf(wire.CodeTooMany,
		"This account has %d sidecars already; no more are listed.", FleetMax)
}

// NewFleet lists the sidecars that are not forgotten, by name and id, and marks those
// that are alive.
func NewFleet(items []wire.FleetSidecar, now time.Time) wire.Fleet {
	items = slices.DeleteFunc(items, func(s wire.FleetSidecar) bool {
		return now.Sub(s.LastSeen) > FleetKept
	})
	for i := range items {
		items[i].Alive = now.Sub(items[i].LastSeen) <= wire.AliveFor
	}
	sort.Slice(items, func(i, j int) bool {
		a, b := &items[i], &items[j]
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) < 0
	})

	return wire.Fleet{Success: true, Items: items}
}
