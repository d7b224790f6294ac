package archive

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"promptspool/api/calls"
	"promptspool/api/wire"
	"promptspool/api/wire/secrets"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/crashpoint"
)

// EditFunc may change a record and the bodies kept of its events, by event id. It reports
// whether it did.
type EditFunc func(s *State, bodies map[string]json.RawMessage) (changed bool, err error)

// Edit calls change with these records, orphans included, and stores what it changed. It is
// durable when it returns, with everything that derives from the records. It uses one
// transaction, or several as Apply does. Of the bodies it stores those whose hash in the
// history changed. With erase set, the old content is erased as deleted records are. Records that
// do not exist are left out. change may be called again for the same record.
func Edit(
	ctx context.Context, s Store, account string, ids []string, erase bool, change EditFunc,
) (changed int, err error) {
	err = Apart(ids, func(part []string) error {
		n := 0
		err := s.Change(ctx, account, part, false, func(g *Group, reader Loader) (err error) {
			n, err = g.edit(reader, erase, change)
			return err
		})
		if err == nil {
			changed += n
		}
		return err
	})

	return changed, err
}

// edit lets change edit the group's records, and returns how many it changed.
func (g *Group) edit(reader Loader, erase bool, change EditFunc) (changed int, err error) {
	for _, r := range g.Records {
		if len(r.State.History) == 0 {
			// Deleted since.
			continue
		}

		// All of them: an edit may concern an event that no longer shows.
		bodies, err := reader.Bodies(r)
		if err != nil {
			return 0, err
		}
		r.Changed, err = r.edit(bodies, change)
		if err != nil {
			return 0, err
		}
		if !r.Changed {
			continue
		}

		// Its row may have come or gone, and shows other values.
		changed++
		r.edited, r.Erase = true, erase
		g.Accounts[r.Account].Orphans.Add(r.State.Waiting().Minus(r.Before.Waiting))
	}

	return changed, nil
}

// edit calls change on the record with these bodies, and keeps each body that it changed.
func (r *Record) edit(bodies map[string]json.RawMessage, change EditFunc) (changed bool, err error) {
	// The hash in the history shows which bodies change has touched. Only these are
	// written again.
	hashes := make(map[string]string)
	for _, h := range r.State.History {
		hashes[h.ID] = h.Hash
	}

	changed, err = change(&r.State.State, bodies)
	if err != nil || !changed {
		return false, err
	}
	for _, h := range r.State.History {
		if h.Hash == hashes[h.ID] {
			continue
		}
		event, _ := ParseUUID(h.ID)
		r.Replaced = with(r.Replaced, event, bodies[h.ID])
	}

	return true, nil
}

// Moved is a record of another database, with the bodies kept of its events, by event id.
type Moved struct {
	State  State
	Bodies map[string]json.RawMessage
}

// Weight returns about how many bytes the record has.
func (m *Moved) Weight() (bytes int) {
	for _, body := range m.Bodies {
		bytes += len(body)
	}
	return bytes + m.State.Weight()
}

// Bring stores records as they were in another database, durably. Those that exist it leaves as
// they are.
func Bring(ctx context.Context, s Store, account string, records []Moved) error {
	return Apart(records, func(part []Moved) error {
		var ids []string
		moved := make(map[UUID]*Moved)
		for i := range part {
			id, ok := ParseUUID(part[i].State.RequestID)
			if !ok {
				return BadID(part[i].State.RequestID)
			}
			ids = append(ids, part[i].State.RequestID)
			moved[id] = &part[i]
		}

		return s.Change(ctx, account, ids, false, func(g *Group, reader Loader) error {
			for _, r := range g.Records {
				if err := g.bring(r, moved[r.ID], reader); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// SelectorOf returns the Selectors of a single deletion by a metadata value.
func SelectorOf(d wire.Deletion) Selectors {
	hash := rowcode.HashValue(d.Key, d.Value)

	return func(key, value string) (time.Time, bool) {
		return d.Before, key == d.Key && rowcode.HashStored(key, value) == hash
	}
}

// Mask masks the secrets in the bodies of a record and in what was derived from its
// events. It is an EditFunc.
func (s *State) Mask(bodies map[string]json.RawMessage) (changed bool, err error) {
	// Long values are restored below, to be masked whole. At the
	// end the state only refers to them again.
	defer func() { s.refer(bodies) }()

	for i := range s.History {
		h := &s.History[i]
		masked, found := MaskBody(bodies[h.ID])
		if !found {
			continue
		}
		bodies[h.ID] = masked
		h.Bytes, h.Hash = len(masked), HashBody(masked)
		changed = true

		// An excerpt may end within a secret, which then no longer looks like one.
		if s.Request != nil && h.ID == s.Request.ID {
			call := calls.Read(masked)
			s.Request.Value.InputExcerpt, s.Request.Value.OutputExcerpt = call.Excerpts()
		}
		// So may the name of a span, of which the state has only the beginning.
		if s.Span != nil && h.ID == s.Span.ID {
			if body, err := wire.ParseObject(masked); err == nil {
				span, _ := readSpan(body)
				s.Span.Value.Name = span.Name
			}
		}
	}

	// References are to values as they were before masking, so they no longer match.
	s.restore(bodies, func(string, string, string) bool { return true })

	// Ids look like anything, in the form in which these are stored.
	unlisted := s.Unlisted
	s.Unlisted = nil
	derived, err := json.Marshal(s)
	s.Unlisted = unlisted
	if err != nil {
		return false, err
	}
	masked, found := MaskBody(derived)
	if !found {
		return changed, nil
	}

	*s = State{}
	if err := json.Unmarshal(masked, s); err != nil {
		return false, err
	}
	s.Unlisted = unlisted
	// Groups whose ids differed in a secret alone are one
	// now, and the order may be another.
	slices.Sort(s.GroupIDs)
	s.GroupIDs = slices.Compact(s.GroupIDs)

	return true, nil
}

// MaskBody masks the secrets of a JSON object. In anything else it finds none.
func MaskBody(body []byte) (masked []byte, found bool) {
	object, err := wire.ParseObject(body)
	if err != nil {
		return body, false
	}

	return secrets.Mask(body, object)
}

// Renewed is a Store that knows what of its records is as this version writes it.
type Renewed interface {
	Store

	// Filled returns the first column that rows may lack although their states say what is in it.
	// Until it is set, records need not be in the sets of their places either: see Settled.
	Filled(ctx context.Context) (rowcode.Column, error)
	SetFilled(ctx context.Context, end rowcode.Column) error
}

// Settled reports whether all records are in the sets of their places, by what Filled returns. Those
// that 0.1.0 wrote are not.
func Settled(filled rowcode.Column) bool { return filled > rowcode.FirstColumns }

// renewPart is how many records Renew changes together: writers wait for these.
const renewPart = 100

// Renew brings what an earlier version wrote to the form of this one. Rows get the columns that there
// were not then, and records come into their sets. Ended early, it begins again
// the next time; done, it costs nothing. Several may run at a time.
func Renew(ctx context.Context, s Renewed, logger *slog.Logger) error {
	from, err := s.Filled(ctx)
	if err != nil || from >= rowcode.ColumnBody {
		return err
	}

	records := 0
	accounts, err := s.Accounts(ctx)
	for _, account := range accounts {
		for after, more := "", true; more && err == nil; {
			var ids []string
			ids, err = s.IDs(ctx, account, after, renewPart)
			if err == nil {
				err = renewRecords(ctx, s, account, ids, from)
			}
			more = len(ids) == renewPart
			if more {
				after = ids[len(ids)-1]
			}
			records += len(ids)
		}
	}
	if err != nil {
		return err
	}

	if records > 0 {
		logger.Info("What an earlier version wrote is renewed", "records", records)
	}
	crashpoint.Reach(crashpoint.FillDone)

	return s.SetFilled(ctx, rowcode.ColumnBody)
}

// renewRecords writes the rows of some records again if their states have anything in a column from one
// on, and puts the records into their sets.
func renewRecords(
	ctx context.Context, s Store, account string, ids []string, from rowcode.Column,
) error {
	defer crashpoint.Reach(crashpoint.FillPart)

	return Apart(ids, func(part []string) error {
		return s.Change(ctx, account, part, false, func(g *Group, reader Loader) error {
			g.Fills = Settled(from)
			for _, r := range slices.Clone(g.Records) {
				row, listed := r.State.Row()
				r.Changed = listed && rowcode.HasFrom(from, &row)
				if g.Fills {
					continue
				}

				// With the reports of its call, which may leave the list.
				call, err := g.CallOf(reader, r)
				if err != nil {
					return err
				}
				for _, r := range call {
					r.settles, r.placed, r.in = len(r.State.History) > 0, nil, nil
				}
			}
			return nil
		})
	})
}
