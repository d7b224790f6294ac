package accounts_test

import (
	"fmt"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/database/accounts"
	"promptspool/spool/database/keyed"
	"promptspool/spool/database/keyed/keyedtest"
)

// told is a store with a target of a project.
type told struct {
	*testing.T
	*accounts.Store
	rows *keyedtest.Memory
	id   wire.Identity
	now  time.Time
}

func newTold(t *testing.T) *told {
	s := &told{T: t, rows: &keyedtest.Memory{}, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	s.Store = accounts.New(s.rows, func() time.Time { return s.now })
	account, err := s.Account(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	s.id.Account = account
	s.put("hook")
	return s
}

func (s *told) put(name string) {
	s.Helper()
	if err := s.ChangeTarget(s.Context(), s.id, name, func(*wire.SealedTarget) error { return nil }); err != nil {
		s.Fatal(err)
	}
}

// notify commits a number of notices, and puts them into queues.
func (s *told) notify(count int) {
	s.Helper()
	err := s.rows.Change(s.Context(), s.id.Account, true, func(tx *keyed.Tx) error {
		for n := range count {
			if err := accounts.Notify(tx, s.id.Account, s.now, wire.Notice{Title: fmt.Sprint(n)}); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = s.SpreadNotices(s.Context())
	}
	if err != nil {
		s.Fatal(err)
	}
}

// want checks what the target says of itself.
func (s *told) want(what string, waiting, dead, dropped int) {
	s.Helper()
	all, err := s.SealedTargets(s.Context(), s.id)
	if err != nil || len(all) == 0 {
		s.Fatalf("%d targets, %v", len(all), err)
	}
	t := all[0]
	if t.Waiting != waiting || t.Dead != dead || t.Dropped != dropped {
		s.Errorf("%s: %d wait, %d are dead, %d dropped; want %d, %d, %d",
			what, t.Waiting, t.Dead, t.Dropped, waiting, dead, dropped)
	}
}

// deliver is a step of a server.
func (s *told) deliver(holder string, last *wire.Attempt) *wire.Attempt {
	s.Helper()
	next, err := s.Deliver(s.Context(), s.id.Account, "hook", holder, last, s.now.Add(time.Minute))
	if err != nil {
		s.Fatal(err)
	}
	return next
}

// A server that was slow to come back finds that another has the target, and changes nothing.
func TestATargetHasOneServerAtATime(t *testing.T) {
	s := newTold(t)
	s.notify(2)
	a := s.deliver("a", nil)
	if a == nil || a.About[0].Title != "0" || s.deliver("b", nil) != nil {
		t.Fatalf("a has %+v, or b has one as well", a)
	}

	s.now = s.now.Add(time.Minute + time.Second)
	b := s.deliver("b", nil)
	if b == nil || b.About[0].ID != a.About[0].ID {
		t.Fatalf("b has %+v", b)
	}
	if next := s.deliver("a", a); next != nil {
		t.Errorf("a goes on with %+v", next)
	}
	s.want("what a delivered too late", 2, 0, 0)
	// It is discarded while it is delivered.
	gone := wire.DeliveryChoice{ID: b.About[0].ID}
	if n, err := s.TakeDeliveries(t.Context(), s.id, "hook", gone); n != 1 || err != nil {
		t.Errorf("%d were discarded, %v", n, err)
	}
	if next := s.deliver("b", b); next == nil || next.About[0].Title != "1" || s.deliver("b", next) != nil {
		t.Errorf("b goes on with %+v", next)
	}
	s.want("in the end", 0, 0, 0)
}

func TestAProjectHasSoManyTargets(t *testing.T) {
	s := newTold(t)
	for n := range wire.TargetsMax - 1 {
		s.put(fmt.Sprint("more-", n))
	}
	change := func(*wire.SealedTarget) error { return nil }
	if err := s.ChangeTarget(t.Context(), s.id, "beyond", change); !wire.IsCode(err, wire.CodeConflict) {
		t.Errorf("one more: %v", err)
	}
	s.put("hook")

	others := wire.Identity{Account: "another"}
	_, listed := s.Deliveries(t.Context(), others, "hook", wire.DeliveryQuery{})
	_, taken := s.TakeDeliveries(t.Context(), others, "hook", wire.DeliveryChoice{})
	for _, err := range []error{listed, taken, s.RemoveTarget(t.Context(), others, "hook")} {
		if !wire.IsCode(err, wire.CodeNotFound) {
			t.Errorf("in another project: %v", err)
		}
	}
}
