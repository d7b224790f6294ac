//go:build !race

package accounts_test

import (
	"slices"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/database/accounts"
	"promptspool/spool/database/keyed"
)

// A new sidecar does not make the server read a full fleet, which forgets silent ones sooner.
func TestAFleetIsBounded(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	now := start
	rows := &counting{}
	here := accounts.New(rows, func() time.Time { return now })
	elsewhere := accounts.New(rows, func() time.Time { return now })
	beat := func(s *accounts.Store, n int) error {
		return s.Beat(t.Context(), wire.Identity{Account: "a"}, wire.Heartbeat{
			ID: sidecarID(n), Name: "n", Version: "1", StartedAt: start,
		})
	}
	for n := range accounts.FleetMax {
		now = now.Add(time.Millisecond)
		if err := beat(here, n); err != nil {
			t.Fatal(err)
		}
	}

	if err := here.NotifyFleet(t.Context()); err != nil {
		t.Fatal(err)
	}

	rows.read = 0
	for n := range 50 {
		if err := beat(here, accounts.FleetMax+n); !wire.IsCode(err, wire.CodeTooMany) {
			t.Fatalf("a new sidecar in a full fleet: %v", err)
		}
	}
	if rows.read > 100 {
		t.Errorf("%d sidecars were read", rows.read)
	}

	now = now.Add(accounts.FullFleetKept - time.Minute)
	if err := beat(elsewhere, 7); err != nil {
		t.Fatalf("a known sidecar in a full fleet: %v", err)
	}
	for _, ids := range [][]int{{7, accounts.FleetMax - 1}, {7}} {
		if err := here.NotifyFleet(t.Context()); err != nil {
			t.Fatal(err)
		}
		list, err := here.Fleet(t.Context(), wire.Identity{Account: "a"})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range ids {
			if !slices.ContainsFunc(list.Items, func(s wire.FleetSidecar) bool { return s.ID == sidecarID(n) }) {
				t.Errorf("the sidecar %d is not among %d", n, len(list.Items))
			}
		}
		now = now.Add(2 * time.Minute)
	}
	if err := beat(here, accounts.FleetMax); err != nil {
		t.Errorf("a new sidecar once others are forgotten: %v", err)
	}
	if list, err := here.Fleet(t.Context(), wire.Identity{Account: "a"}); err != nil || len(list.Items) != 2 {
		t.Errorf("%d sidecars are kept (%v)", len(list.Items), err)
	}
}

// Nothing is dropped that is not counted: what a full queue does not take is dead, and can be replayed.
func TestAFullQueueMakesDeadLetters(t *testing.T) {
	s := newTold(t)
	s.notify(accounts.QueueMax)
	s.want("at the limit", accounts.QueueMax, 0, 0)
	s.notify(3)
	s.want("beyond it", accounts.QueueMax, 3, 0)

	dead, err := s.Deliveries(t.Context(), s.id, "hook", wire.DeliveryQuery{Dead: true})
	if err != nil || len(dead) != 3 || dead[0].Error != "The queue was full." ||
		dead[0].Notice.Project != "acme" {
		t.Errorf("dead letters: %+v, %v", dead, err)
	}
	again := wire.DeliveryChoice{Dead: true, Replay: true}
	if n, err := s.TakeDeliveries(t.Context(), s.id, "hook", again); n != 0 || err != nil {
		t.Errorf("%d went into the full queue, %v", n, err)
	}
	first := s.deliver("a", nil)
	if next := s.deliver("a", first); next.About[0].Title != "1" {
		t.Errorf("the second is %+v", next.About)
	}
	if n, err := s.TakeDeliveries(t.Context(), s.id, "hook", again); n != 1 || err != nil {
		t.Errorf("%d went into the free place, %v", n, err)
	}
	s.want("after a replay", accounts.QueueMax, 2, 0)

	s.notify(accounts.DeadMax)
	s.want("more than all bounds", accounts.QueueMax, accounts.DeadMax, 2)
	if err := s.RemoveTarget(t.Context(), s.id, "hook"); err != nil {
		t.Fatal(err)
	}
	left, err := s.rows.Walk(t.Context(), keyed.Key{}, 10)
	if err != nil || len(left) != 1 {
		t.Errorf("a removed target leaves %d values, %v", len(left)-1, err)
	}
}
