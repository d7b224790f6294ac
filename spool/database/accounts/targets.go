package accounts

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/database/keyed"
)

// Kinds of an account's values about its targets. A place is a target's id and a position, big-endian.
const (
	targets      keyed.Kind = "targets"             // wire.SealedTarget by name
	targetQueues keyed.Kind = "target queues"       // wire.Delivery by place
	targetDead   keyed.Kind = "target dead letters" // wire.Delivery by place
	targetHolds  keyed.Kind = "target holds"        // what an Alertmanager holds, by labels; by id
)

// deliveriesMax bounds the deliveries that are read or changed at a time.
const deliveriesMax = 200

// repeatEvery is how often an Alertmanager is told what holds: it ends what it does not hear of.
const repeatEvery = time.Minute

// targetQueue is a target in a change of its account.
type targetQueue struct {
	*keyed.Tx
	account string
	now     time.Time
	wire.SealedTarget
}

func (s *Store) queueOf(tx *keyed.Tx, account string, t *wire.SealedTarget) *targetQueue {
	return &targetQueue{tx, account, s.now().UTC(), *t}
}

func targetKey(account, name string) keyed.Key {
	return keyed.Key{Kind: targets, Account: account, Name: name}
}

func (q *targetQueue) save() error { return q.Put(targetKey(q.account, q.Name), &q.SealedTarget) }

func (q *targetQueue) holdsKey() keyed.Key {
	return keyed.Key{Kind: targetHolds, Account: q.account, Name: q.ID}
}

// place is where the delivery of a position is.
func (q *targetQueue) place(kind keyed.Kind, position int) keyed.Key {
	name := binary.BigEndian.AppendUint64([]byte(q.ID), uint64(position))
	return keyed.Key{Kind: kind, Account: q.account, Name: string(name)}
}

// entries returns up to limit deliveries of a kind, from a position on.
func (q *targetQueue) entries(ctx context.Context, kind keyed.Kind, from, limit int) ([]keyed.Entry, error) {
	page, err := q.Scan(ctx, q.place(kind, from), 0, limit)
	// Ids have one length, so the names of another target's begin otherwise.
	return slices.DeleteFunc(page, func(e keyed.Entry) bool { return !strings.HasPrefix(e.Name, q.ID) }), err
}

// push appends a notice. To a full queue it comes as a dead letter.
func (q *targetQueue) push(n wire.Notice) error {
	q.Position++
	d := wire.Delivery{Position: q.Position, Notice: n}
	if q.Waiting >= QueueMax {
		d.Error = "The queue was full."
		return q.bury(d)
	}
	q.Waiting++
	return q.Put(q.place(targetQueues, d.Position), d)
}

// bury makes a dead letter of a delivery, or counts it if there are too many.
func (q *targetQueue) bury(d wire.Delivery) error {
	if q.Dead >= DeadMax {
		q.Dropped++
		return nil
	}
	q.Dead++
	return q.Put(q.place(targetDead, d.Position), d)
}

// SpreadNotices puts the notices of all accounts into the queues of their targets, in the order of
// their ids. Any number of servers may do so at the same time.
func (s *Store) SpreadNotices(ctx context.Context) error {
	var names map[string]string // of projects by id, read when a notice needs one that is missing
	return keyed.EachOfAll(ctx, s.rows, notices, func(key keyed.Key, n *wire.Notice) error {
		if _, known := names[key.Account]; !known {
			projects, err := s.Projects(ctx)
			if err != nil {
				return err
			}
			names = make(map[string]string, len(projects))
			for _, a := range projects {
				names[a.ID] = a.Name
			}
		}
		n.Project = names[key.Account]

		return s.rows.Change(ctx, key.Account, true, func(tx *keyed.Tx) error {
			was, err := tx.Get(ctx, key)
			if err != nil || was[0] == nil {
				return err
			}
			tx.Delete(key)

			return keyed.Each(ctx, tx, targetKey(key.Account, ""), func(_ keyed.Key, t *wire.SealedTarget) error {
				if !t.Takes(n) {
					return nil
				}
				q := s.queueOf(tx, key.Account, t)
				return cmp.Or(q.push(*n), q.save())
			})
		})
	})
}

// SealedTargets returns the project's targets, by name.
func (s *Store) SealedTargets(ctx context.Context, id wire.Identity) ([]wire.SealedTarget, error) {
	return named[wire.SealedTarget](ctx, s.rows, targets, id.Account)
}

// EachTarget calls fn with the targets of all accounts.
func (s *Store) EachTarget(ctx context.Context, fn func(account string, t *wire.SealedTarget)) error {
	return keyed.EachOfAll(ctx, s.rows, targets, func(key keyed.Key, t *wire.SealedTarget) error {
		fn(key.Account, t)
		return nil
	})
}

// ChangeTarget changes a target or, if none has the name, makes one of an empty one. The notices that
// wait are tried again then. A project has wire.TargetsMax targets.
func (s *Store) ChangeTarget(
	ctx context.Context, id wire.Identity, name string, change func(*wire.SealedTarget) error,
) error {
	return s.rows.Change(ctx, id.Account, false, func(tx *keyed.Tx) error {
		key := targetKey(id.Account, name)
		t, found, err := keyed.Load[wire.SealedTarget](ctx, tx, key)
		if err == nil && !found {
			t.ID, t.Name, t.CreatedAt = wire.NewID(), name, s.now().UTC()
			err = hasRoom(ctx, tx, key, wire.TargetsMax)
		}
		if err != nil {
			return err
		}
		err = change(&t)
		t.EndPause()
		return cmp.Or(err, s.queueOf(tx, id.Account, &t).save())
	})
}

// changeQueue calls fn with a target that exists.
func (s *Store) changeQueue(ctx context.Context, id wire.Identity, name string, fn func(*targetQueue) error) error {
	return s.rows.Change(ctx, id.Account, false, func(tx *keyed.Tx) error {
		t, err := get[wire.SealedTarget](ctx, tx, targetKey(id.Account, name), errNoTarget)
		if err != nil {
			return err
		}
		return fn(s.queueOf(tx, id.Account, &t))
	})
}

func errNoTarget() *wire.Error {
	return wire.Errorf(wire.CodeNotFound, "There is no target of this name.")
}

// RemoveTarget removes a target with its notices, a part at a time. If that fails halfway, the target
// has the rest, and can be removed again.
func (s *Store) RemoveTarget(ctx context.Context, id wire.Identity, name string) error {
	for left := 1; left > 0; {
		err := s.changeQueue(ctx, id, name, func(q *targetQueue) error {
			waiting, err := q.entries(ctx, targetQueues, 0, deliveriesMax)
			dead, failed := q.entries(ctx, targetDead, 0, deliveriesMax)
			for _, e := range append(waiting, dead...) {
				q.Delete(e.Key)
			}

			left = len(waiting) + len(dead)
			q.Waiting -= len(waiting)
			q.Dead -= len(dead)
			if left > 0 {
				return cmp.Or(err, failed, q.save())
			}
			q.Delete(q.holdsKey())
			q.Delete(targetKey(id.Account, name))
			return cmp.Or(err, failed)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Deliver keeps what became of the last attempt for a target, and returns the next one. Without a last
// one, it takes the target for holder, if it is due.
//
// It is the holder's until a moment, unless the holder calls again. next is nil if there is nothing to
// send now, and if another server has the target, or none has it any more.
func (s *Store) Deliver(
	ctx context.Context, account, name, holder string, last *wire.Attempt, until time.Time,
) (next *wire.Attempt, err error) {
	err = s.changeQueue(ctx, wire.Identity{Account: account}, name, func(q *targetQueue) error {
		next = nil
		from := 0
		switch {
		case last == nil && !q.IsDue(q.now), last != nil && (q.ID != last.Target.ID || q.Holder != holder):
			return nil
		case last != nil:
			if err := q.settle(ctx, last); err != nil {
				return err
			}
			// The change does not see yet that it deletes this one.
			if last.Delivery != nil {
				from = last.Position + 1
			}
		}

		q.Holder, q.DueAt = "", time.Time{}
		if last != nil && q.Tries > 0 {
			q.DueAt = last.RetryAt
			return q.save()
		}
		var err error
		next, err = q.next(ctx, from)
		if next != nil {
			q.Holder, q.DueAt = holder, until.UTC()
		}
		return cmp.Or(err, q.save())
	})
	if wire.IsCode(err, wire.CodeNotFound) {
		return nil, nil
	}
	return next, err
}

// next returns the delivery at or after a position or, if an Alertmanager is due for it, what it holds.
func (q *targetQueue) next(ctx context.Context, from int) (*wire.Attempt, error) {
	a := &wire.Attempt{Target: q.SealedTarget}
	first, err := q.entries(ctx, targetQueues, from, 1)
	if err == nil && len(first) > 0 {
		a.Delivery = new(wire.Delivery)
		return a, first[0].Decode(a.Delivery)
	}
	if err != nil || q.Holds == 0 || q.RepeatAt.After(q.now) {
		return nil, err
	}

	held, _, err := keyed.Load[map[string]wire.Notice](ctx, q, q.holdsKey())
	a.Holds = slices.Collect(maps.Values(held))
	return a, err
}

// settle takes what was delivered, or is dead, out of the queue. It counts another failure otherwise.
func (q *targetQueue) settle(ctx context.Context, a *wire.Attempt) error {
	q.Error = a.Error
	if a.Error != "" && !a.Dead {
		q.Tries++
		return nil
	}
	q.Tries = 0
	if a.Delivery == nil {
		q.RepeatAt = q.now.Add(repeatEvery)
		return nil
	}

	// A person may have discarded it meanwhile.
	key := q.place(targetQueues, a.Position)
	was, err := q.Get(ctx, key)
	if err == nil && was[0] != nil {
		q.Delete(key)
		q.Waiting--
	}
	if a.Dead {
		a.Delivery.Error = a.Error
		return cmp.Or(err, q.bury(*a.Delivery))
	}
	q.Delivered++
	q.DeliveredAt = &q.now
	return cmp.Or(err, q.hold(ctx, &a.Notice))
}

// hold keeps what an Alertmanager is told again until it ends.
func (q *targetQueue) hold(ctx context.Context, n *wire.Notice) error {
	begins, holds := n.Condition()
	if q.Kind != wire.TargetAlertmanager || begins == "" {
		return nil
	}
	all, _, err := keyed.Load[map[string]wire.Notice](ctx, q, q.holdsKey())
	if all == nil {
		all = map[string]wire.Notice{}
	}

	// Labels encode in the order of their names.
	labels, _ := json.Marshal(n.Labels)
	delete(all, begins+string(labels))
	if holds {
		all[begins+string(labels)] = *n
	}
	if q.Holds == 0 {
		q.RepeatAt = q.now.Add(repeatEvery)
	}
	q.Holds = len(all)
	return cmp.Or(err, q.Put(q.holdsKey(), all))
}

// kindOf is where the dead letters are, or what waits.
func kindOf(dead bool) keyed.Kind {
	if dead {
		return targetDead
	}
	return targetQueues
}

// Deliveries returns a page of a target's queue, or of its dead letters.
func (s *Store) Deliveries(
	ctx context.Context, id wire.Identity, name string, asked wire.DeliveryQuery,
) (wire.DeliveryPage, error) {
	t, err := get[wire.SealedTarget](ctx, s.rows, targetKey(id.Account, name), errNoTarget)
	if err != nil {
		return wire.DeliveryPage{}, err
	}
	q := s.queueOf(keyed.NewTx(s.rows), id.Account, &t)
	items, err := decoded[wire.Delivery](q.entries(ctx, kindOf(asked.Dead), asked.After+1, deliveriesMax))
	return wire.DeliveryPage{Success: true, Items: items}, err
}

// TakeDeliveries deletes the delivery of a position, or the first deliveries. With replay it appends them
// to the queue again, under their ids, as far as there is room. It returns how many: at most 200.
func (s *Store) TakeDeliveries(
	ctx context.Context, id wire.Identity, name string, c wire.DeliveryChoice,
) (n int, err error) {
	err = s.changeQueue(ctx, id, name, func(q *targetQueue) error {
		limit := deliveriesMax
		if c.Position > 0 {
			limit = 1
		}
		if c.Replay {
			limit = min(limit, QueueMax-q.Waiting)
		}
		chosen, err := q.entries(ctx, kindOf(c.Dead), c.Position, limit)

		n = 0
		for _, e := range chosen {
			d := wire.Delivery{}
			err = cmp.Or(err, e.Decode(&d))
			if c.Position > 0 && d.Position != c.Position {
				break
			}
			n++
			q.Delete(e.Key)
			if c.Dead {
				q.Dead--
			} else {
				q.Waiting--
			}
			if c.Replay {
				err = cmp.Or(err, q.push(d.Notice))
			}
		}
		q.EndPause()
		return cmp.Or(err, q.save())
	})
	return n, err
}
