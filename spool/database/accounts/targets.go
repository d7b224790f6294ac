package accounts

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/database/keyed"
)

// Kinds of what a project's targets are told. A place is the id of a target and that of a notice, so that
// a queue is in the order of the notices.
const (
	notices      keyed.Kind = "notices"             // wire.Notice by id: those that no queue has yet
	targets      keyed.Kind = "targets"             // wire.SealedTarget by name
	targetQueues keyed.Kind = "target queues"       // wire.Delivery by place
	targetDead   keyed.Kind = "target dead letters" // wire.Delivery by place
)

// Bounds of what a target has not been told.
const (
	QueueMax = 5_000
	DeadMax  = 5_000
)

const (
	deliveriesMax = 200  // read or changed at a time
	heldMax       = 1000 // conditions of an Alertmanager

	// repeatEvery is how often an Alertmanager is told what holds: it ends what it does not hear of.
	repeatEvery = time.Minute
)

// Notify puts a notice on its way to an account's targets, in the caller's transaction.
//
// The notice is told if the transaction is committed, also after a crash, and otherwise not. That is
// one write and no read, so tx may be a change of the account or of the server. Within a second, a
// server puts it into the queue of each target: those that n.Targets names and, without names, those
// that subscribe to its type. If there are none, it is forgotten. Queues are in the order of ids.
//
// An id and a time that are missing are made here. A caller whose transaction may run again should give
// the id, or two may be told. A queue has QueueMax notices: what comes to a full one becomes a dead
// letter at once. With DeadMax dead letters, it is dropped, and the target counts it.
func Notify(tx *keyed.Tx, account string, now time.Time, n wire.Notice) error {
	n.ID = cmp.Or(n.ID, wire.NewID())
	if n.Time.IsZero() {
		n.Time = now.UTC()
	}
	return tx.Put(keyed.Key{Kind: notices, Account: account, Name: n.ID}, n)
}

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

// left returns the kind of what waits, or of the dead letters, and the target's count of them.
func (q *targetQueue) left(dead bool) (kind keyed.Kind, count *int) {
	if dead {
		return targetDead, &q.Dead
	}
	return targetQueues, &q.Waiting
}

// place is where the delivery of a notice is.
func (q *targetQueue) place(kind keyed.Kind, notice string) keyed.Key {
	return keyed.Key{Kind: kind, Account: q.account, Name: q.ID + notice}
}

// entries returns up to limit deliveries, from a notice on. limit is at least 1.
func (q *targetQueue) entries(ctx context.Context, dead bool, from string, limit int) ([]keyed.Entry, error) {
	kind, _ := q.left(dead)
	page, err := q.Scan(ctx, q.place(kind, from), 0, limit)
	// Ids have one length, so the names of another target's begin otherwise.
	return slices.DeleteFunc(page, func(e keyed.Entry) bool { return !strings.HasPrefix(e.Name, q.ID) }), err
}

// add puts a delivery into the queue or, if that is full, among the dead letters.
func (q *targetQueue) add(d wire.Delivery, dead bool) error {
	if !dead && q.Waiting >= QueueMax {
		d.Error, dead = "The queue was full.", true
	}
	if dead && q.Dead >= DeadMax {
		q.Dropped++
		return nil
	}
	kind, count := q.left(dead)
	*count++
	return q.Put(q.place(kind, d.Notice.ID), d)
}

// SpreadNotices puts the notices of all accounts into the queues of their targets. Any number of servers
// may do so at the same time.
func (s *Store) SpreadNotices(ctx context.Context) error {
	projects := sync.OnceValues(func() ([]keyed.Item[wire.Account], error) {
		return keyed.List[wire.Account](ctx, s.rows, keyed.Key{Kind: accounts})
	})
	return keyed.EachOfAll(ctx, s.rows, notices, func(key keyed.Key, n *wire.Notice) error {
		all, err := projects()
		if err != nil {
			return err
		}
		for _, a := range all {
			if a.Of.ID == key.Account {
				n.Project = a.Of.Name
			}
		}

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
				return cmp.Or(q.add(wire.Delivery{Notice: *n}, false), q.save())
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
		return cmp.Or(err, tx.Put(key, &t))
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

// RemoveTarget removes a target with its notices. CodeConflict if the rule of an alert names it.
func (s *Store) RemoveTarget(ctx context.Context, id wire.Identity, name string) error {
	return s.changeQueue(ctx, id, name, func(q *targetQueue) error {
		all, err := named[wire.Alert](ctx, q, alerts, id.Account)
		at := slices.IndexFunc(all, func(a wire.Alert) bool { return slices.Contains(a.Targets, name) })
		if err == nil && at >= 0 {
			err = wire.Errorf(wire.CodeConflict, "The alert %.200q names this target. Change it first.", all[at].Name)
		}
		if err != nil {
			return err
		}

		waiting, err := q.entries(ctx, false, "", QueueMax)
		dead, failed := q.entries(ctx, true, "", DeadMax)
		for _, e := range append(waiting, dead...) {
			q.Delete(e.Key)
		}
		q.Delete(targetKey(id.Account, name))
		return cmp.Or(err, failed)
	})
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
		from := ""
		if last != nil {
			if q.ID != last.Target.ID || q.Holder != holder {
				return nil
			}
			if err := q.settle(ctx, last); err != nil {
				return err
			}
			// The change does not see yet that it deletes this one.
			if !last.Repeats {
				from = last.About[0].ID + "\x00"
			}
		}

		var err error
		if q.IsDue(q.now) {
			next, err = q.next(ctx, from)
		}
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

// next returns the delivery of a notice or of one after it or, if none waits, what an Alertmanager holds.
func (q *targetQueue) next(ctx context.Context, from string) (*wire.Attempt, error) {
	a := &wire.Attempt{Target: q.SealedTarget}
	if q.Waiting == 0 {
		a.About, a.Repeats = slices.Collect(maps.Values(q.Held)), true
		return a, nil
	}
	first, err := decoded[wire.Delivery](q.entries(ctx, false, from, 1))
	if err != nil || len(first) == 0 {
		return nil, err
	}
	a.About = []wire.Notice{first[0].Notice}
	return a, nil
}

// settle takes what was delivered, or is dead, out of the queue. It counts another failure otherwise.
func (q *targetQueue) settle(ctx context.Context, a *wire.Attempt) error {
	q.Holder, q.DueAt, q.Error = "", a.RetryAt, a.Error
	if a.Error != "" && !a.Dead {
		q.Tries++
		return nil
	}
	q.Tries = 0
	if a.Repeats {
		q.RepeatAt = q.now.Add(repeatEvery)
		return nil
	}

	// A person may have discarded it meanwhile.
	key := q.place(targetQueues, a.About[0].ID)
	was, err := q.Get(ctx, key)
	if err != nil {
		return err
	}
	if was[0] != nil {
		q.Delete(key)
		q.Waiting--
	}
	if a.Dead {
		return q.add(wire.Delivery{Notice: a.About[0], Error: a.Error}, true)
	}
	q.Delivered++
	q.DeliveredAt = &q.now
	q.hold(a.About[0])
	return nil
}

// hold keeps what an Alertmanager is told again until it ends.
func (q *targetQueue) hold(n wire.Notice) {
	begins, holds := n.Condition()
	if q.Kind != wire.TargetAlertmanager || begins == "" {
		return
	}
	if len(q.Held) == 0 {
		q.Held, q.RepeatAt = map[string]wire.Notice{}, q.now.Add(repeatEvery)
	}

	// Labels encode in the order of their names.
	labels, _ := json.Marshal(n.Labels)
	condition := begins + string(labels)
	delete(q.Held, condition)
	if holds && len(q.Held) < heldMax {
		n.Data = nil
		q.Held[condition] = n
	}
}

// Deliveries returns a page of a target's queue, or of its dead letters.
func (s *Store) Deliveries(
	ctx context.Context, id wire.Identity, name string, asked wire.DeliveryQuery,
) ([]wire.Delivery, error) {
	t, err := get[wire.SealedTarget](ctx, s.rows, targetKey(id.Account, name), errNoTarget)
	if err != nil {
		return nil, err
	}
	q := s.queueOf(keyed.NewTx(s.rows), id.Account, &t)
	return decoded[wire.Delivery](q.entries(ctx, asked.Dead, asked.After+"\x00", deliveriesMax))
}

// TakeDeliveries deletes the delivery of a notice, or the first deliveries. With replay it puts them into
// the queue again, under their ids, as far as there is room. It returns how many: at most 200.
func (s *Store) TakeDeliveries(
	ctx context.Context, id wire.Identity, name string, c wire.DeliveryChoice,
) (n int, err error) {
	err = s.changeQueue(ctx, id, name, func(q *targetQueue) error {
		chosen, err := q.entries(ctx, c.Dead, c.ID, deliveriesMax)
		kind, count := q.left(c.Dead)
		if c.ID != "" {
			chosen = slices.DeleteFunc(chosen, func(e keyed.Entry) bool { return e.Key != q.place(kind, c.ID) })
		}

		n = len(chosen)
		if c.Replay {
			n = min(n, QueueMax-q.Waiting)
		}
		*count -= n
		for _, e := range chosen[:n] {
			d := wire.Delivery{}
			err = cmp.Or(err, e.Decode(&d))
			q.Delete(e.Key)
			if c.Replay {
				err = cmp.Or(err, q.add(wire.Delivery{Notice: d.Notice}, false))
			}
		}
		q.EndPause()
		return cmp.Or(err, q.save())
	})
	return n, err
}
