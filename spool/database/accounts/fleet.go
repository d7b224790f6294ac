package accounts

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/keyed"
)

// Bounds of an account's fleet: a sidecar that is silent for longer is forgotten, sooner if the fleet is
// full.
const (
	FleetMax      = 10_000
	FleetKept     = 30 * 24 * time.Hour
	FullFleetKept = 24 * time.Hour
)

const (
	sidecars      keyed.Kind = "sidecars"       // wire.FleetSidecar by id
	sidecarStates keyed.Kind = "sidecar states" // sidecarState by id
)

// silentFor is how long a sidecar is silent before that is a notice: longer than a restart.
const silentFor = 5 * time.Minute

// sidecarState is what a project was told of a sidecar.
type sidecarState struct {
	Silent bool  `json:"silent,omitempty"`
	Lost   int64 `json:"lost,omitempty"`  // events, since it started
	Start  int64 `json:"start,omitempty"` // in nanoseconds since 1970: its counts begin again
}

func sidecarKey(account, id string) keyed.Key {
	return keyed.Key{Kind: sidecars, Account: account, Name: id}
}

// Beat stores a sidecar's heartbeat, durably. A new sidecar of a full fleet is refused with CodeTooMany.
func (s *Store) Beat(ctx context.Context, id wire.Identity, h wire.Heartbeat) error {
	if _, ok := archive.ParseUUID(h.ID); !ok {
		return wire.Errorf(wire.CodeInternal, "%.40q is not an id; the API should not have passed it on.", h.ID)
	}

	key := sidecarKey(id.Account, h.ID)
	known, err := s.rows.Get(ctx, key)
	if err != nil {
		return err
	}
	if known[0] == nil {
		full, err := s.rows.Scan(ctx, sidecarKey(id.Account, ""), FleetMax-1, 1)
		if err == nil && len(full) > 0 {
			err = wire.Errorf(wire.CodeTooMany,
				"This project has %d sidecars already; no more are listed.", FleetMax)
		}
		if err != nil {
			return err
		}
	}

	return s.put(ctx, key, wire.FleetSidecar{Heartbeat: h, LastSeen: s.now().UTC(), KeyID: id.KeyID})
}

// Fleet lists the account's sidecars that are not forgotten, by name and id.
func (s *Store) Fleet(ctx context.Context, id wire.Identity) (wire.Fleet, error) {
	all, err := keyed.List[wire.FleetSidecar](ctx, s.rows, sidecarKey(id.Account, ""))
	if err != nil {
		return wire.Fleet{}, err
	}

	known, err := s.Keys(ctx)
	if err != nil {
		return wire.Fleet{}, err
	}
	byID := make(map[string]wire.Key, len(known))
	for _, k := range known {
		byID[k.ID] = k
	}

	now, items := s.now(), []wire.FleetSidecar{}
	for _, sidecar := range all {
		silent := now.Sub(sidecar.Of.LastSeen)
		sidecar.Of.Alive = silent <= wire.AliveFor
		if silent <= FleetKept {
			sidecar.Of.Needs = needs(sidecar.Of, byID[sidecar.Of.KeyID], now)
			items = append(items, *sidecar.Of)
		}
	}
	slices.SortFunc(items, func(a, b wire.FleetSidecar) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	for i := 1; i < len(items); i++ {
		if items[i].Name == items[i-1].Name {
			items[i].SameName, items[i-1].SameName = true, true
		}
	}
	return wire.Fleet{Success: true, Items: items}, nil
}

// needs returns why a sidecar needs attention. key is the one by which it was last heard from.
func needs(s *wire.FleetSidecar, key wire.Key, now time.Time) (why []string) {
	// Heartbeats go with the key, so a sidecar cannot report that it is refused. One that was
	// stopped before its key ended needs nothing.
	ended := func(at *time.Time) bool {
		return at != nil && !at.After(now) && at.Sub(s.LastSeen) <= wire.AliveFor
	}
	revoked := ended(key.RevokedAt)
	expired := ended(key.ExpiresAt) && !revoked
	// Otherwise it may be running, without a word from it.
	offline := !s.Alive && !revoked && !expired
	for _, n := range []struct {
		is   bool
		text string
	}{
		{revoked, "Its key was revoked, so apps get 401. Give it, or its apps, another one."},
		{expired, "Its key has expired, so apps get 401. Give it, or its apps, another one."},
		{offline && s.BacklogEvents > 0,
			"It is offline, and events wait on its disk. Start it again on its data folder."},
		{s.HeldEvents > 0, "The server rejects the key of the events that it holds."},
		{s.DeadLetters+s.Dropped > 0, "The server rejects the content of its dead letters."},
		{s.LostEvents > 0, "A damaged disk lost events."},
	} {
		if n.is {
			why = append(why, n.text)
		}
	}

	return why
}

// NotifyFleet tells the projects of sidecars that fall silent, are heard again or have lost events, each
// once. One that stopped with nothing in its spool is not silent. It deletes those that are forgotten. Any
// number of servers may call it.
func (s *Store) NotifyFleet(ctx context.Context) error {
	known, sizes := map[keyed.Key]sidecarState{}, map[string]int{}
	err := keyed.EachOfAll(ctx, s.rows, sidecarStates, func(key keyed.Key, is *sidecarState) error {
		known[key] = *is
		sizes[key.Account]++
		return nil
	})
	if err != nil {
		return err
	}

	return keyed.EachOfAll(ctx, s.rows, sidecars, func(key keyed.Key, seen *wire.FleetSidecar) error {
		silent, kept := s.now().Sub(seen.LastSeen), FleetKept
		if sizes[key.Account] >= FleetMax {
			kept = FullFleetKept
		}
		state := keyed.Key{Kind: sidecarStates, Account: key.Account, Name: key.Name}
		if silent > kept {
			return s.rows.Write(ctx, keyed.Entry{Key: key}, keyed.Entry{Key: state})
		}

		is := sidecarState{Lost: seen.LostEvents + seen.Dropped, Start: seen.StartedAt.UnixNano()}
		stopped := seen.Stopped && seen.BacklogEvents == 0
		is.Silent = silent > silentFor && !stopped
		if is == known[state] {
			return nil
		}
		return s.rows.Change(ctx, key.Account, true, func(tx *keyed.Tx) error {
			was, _, err := keyed.Load[sidecarState](ctx, tx, state)
			return cmp.Or(err, s.notifySidecar(tx, key.Account, seen, was, is), tx.Put(state, is))
		})
	})
}

func (s *Store) notifySidecar(
	tx *keyed.Tx, account string, seen *wire.FleetSidecar, was, is sidecarState,
) error {
	notify := func(kind, title, text string) error {
		return Notify(tx, account, s.now(), wire.Notice{
			Type:   kind,
			Title:  title,
			Text:   text,
			URL:    "/sidecars",
			Labels: map[string]string{"sidecar": seen.Name, "id": seen.ID},
		})
	}

	var err error
	switch {
	case is.Silent && !was.Silent:
		err = notify(wire.NoticeSidecarSilent, "The sidecar "+seen.Name+" is silent",
			"It was last heard from at "+seen.LastSeen.Format(time.RFC3339)+", with "+
				english.Plural(int(seen.BacklogEvents), "event", "")+" queued.")
	case was.Silent && !is.Silent:
		err = notify(wire.NoticeSidecarOnline, "The sidecar "+seen.Name+" is heard again", "")
	}
	lost := is.Lost
	if is.Start == was.Start {
		lost -= was.Lost
	}
	if lost > 0 {
		title := "The sidecar " + seen.Name + " lost " + english.Plural(int(lost), "event", "")
		err = cmp.Or(err, notify(wire.NoticeSidecarLosses, title,
			"A damaged disk lost them, or there was no space for dead letters."))
	}
	return err
}

// FleetOfAll counts the sidecars of all accounts, and those alive. A sidecar that serves
// several accounts counts once for each.
func (s *Store) FleetOfAll(ctx context.Context) (known, alive int, err error) {
	now := s.now()
	err = keyed.EachOfAll(ctx, s.rows, sidecars, func(_ keyed.Key, sidecar *wire.FleetSidecar) error {
		known++
		if now.Sub(sidecar.LastSeen) <= wire.AliveFor {
			alive++
		}
		return nil
	})
	return known, alive, err
}
