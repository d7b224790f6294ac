package archive

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"promptspool/api/wire"
	"promptspool/spool/archive/reports"
)

// Loader loads, within the transaction of a Group, what it asks for.
type Loader interface {
	// Sets loads the sets under keys of an account into GroupAccount.Sets.
	Sets(account string, keys []UUID) error

	// Load loads records that were added to the group.
	Load(records []*Record) error

	// Bodies returns the bodies kept of a record's events, by event id.
	Bodies(r *Record) (map[string]json.RawMessage, error)

	// Pack packs a body as the Store keeps it.
	Pack(body []byte) []byte

	// OfTraces returns the ids of the first limit records of each trace, as they were before the group.
	OfTraces(account string, traces []UUID, limit int) (map[UUID][]UUID, error)
}

// Unite brings the records that the changes of the group concern together with others. A Store calls it
// when everything else is decided.
func (g *Group) Unite(l Loader) error {
	g.asked = cmp.Or(g.asked, len(g.Records))
	for account := range g.Accounts {
		u := uniting{Group: g, loader: l, account: account, sets: g.Accounts[account]}
		u.reports = make(map[*Record]*reports.Report)
		if err := u.run(); err != nil {
			return err
		}
	}

	return nil
}

// uniting is Unite for one account.
type uniting struct {
	*Group
	loader  Loader
	account string
	sets    *GroupAccount
	loose   []UUID // records whose call may be another now
	reports map[*Record]*reports.Report
}

func (u *uniting) run() error {
	var changed []*Record
	var keys []UUID
	for _, r := range u.Records {
		if r.Account != u.account || !r.Changed && !r.settles {
			continue
		}
		r.find()
		if r.concerns() {
			changed = append(changed, r)
			keys = append(keys, r.keys()...)
		}
	}
	if err := u.load(keys); err != nil {
		return err
	}

	u.keepOut(changed)
	changed, err := u.bury(changed)
	for _, r := range changed {
		u.place(r)
	}
	together := slices.DeleteFunc(slices.Clone(changed), u.isAlone)
	if err == nil {
		err = u.attach(together)
	}
	if err == nil {
		err = u.takeContexts(changed)
	}
	if err == nil {
		err = u.divide(together)
	}
	if err != nil {
		return err
	}

	return u.composeAll()
}

// composeAll makes the joint bodies again. That of a call has one of its other reports, which comes first.
func (u *uniting) composeAll() error {
	var heads []*Record
	for _, r := range slices.Clone(u.Records) {
		same := r.State.Same
		switch {
		case r.Account != u.account || !r.Changed:
			continue
		case same != nil && same.Words != "":
			heads = append(heads, r)
			continue
		case same != nil && same.Head != "" && !r.Removed && !r.State.hasLogs():
			head, err := u.AddLoaded(u.loader, u.account, same.Head)
			if err != nil {
				return err
			}
			heads = append(heads, head)
		}
		if err := u.compose(r); err != nil {
			return err
		}
	}
	for _, r := range heads {
		if err := u.compose(r); err != nil {
			return err
		}
	}

	return nil
}

// find sets where the record is found now.
func (r *Record) find() {
	r.places = nil
	if !r.Removed {
		r.places = r.State.places()
	}
}

// concerns reports whether a changed record may show something else to others, or of others. Nearly all
// scores and metadata of a call concern no other record.
func (r *Record) concerns() bool {
	s := &r.State
	isNew := r.isNew() || r.Removed || r.edited || r.settles
	shows := s.Same != nil || s.Given != nil || s.Linked != nil || s.Logs != ""

	return isNew || shows || s.hasLogs() || s.isFirst() || s.owner() != r.owner || !slices.Equal(r.placed, r.places)
}

// isNew reports whether the record, or the request in it, was not there before: a score may come first.
func (r *Record) isNew() bool {
	return !r.existed || r.State.Request != nil && r.State.Request.ID != r.stood
}

// isAlone reports whether nothing that belongs to a new record has come yet, as is most common.
func (u *uniting) isAlone(r *Record) bool {
	if r.existed || r.Removed || r.State.hasLogs() || r.State.Same != nil {
		return false
	}
	for _, p := range r.places {
		for _, role := range slices.Concat(reports.Neighbours(p.Role), attachedTo[p.Role]) {
			ids, crowded := u.sets.Sets[p.Key].in(role)
			if crowded || len(ids) > 1 || len(ids) == 1 && ids[0] != r.ID {
				return false
			}
		}
	}

	return true
}

// keys returns the keys of all sets that the record is, or was in.
func (r *Record) keys() (keys []UUID) {
	for _, p := range slices.Concat(r.placed, r.places) {
		keys = append(keys, p.Key)
	}

	return slices.Concat(keys, r.traced, r.State.traceKeys())
}

// load loads the sets under keys, unless the group has them.
func (u *uniting) load(keys []UUID) error {
	slices.SortFunc(keys, compareIDs)
	keys = slices.DeleteFunc(slices.Compact(keys), func(key UUID) bool { return u.sets.Sets[key] != nil })
	if len(keys) == 0 {
		return nil
	}

	return u.loader.Sets(u.account, keys)
}

// keepOut removes new records of a call that was deleted.
func (u *uniting) keepOut(changed []*Record) {
	for _, r := range changed {
		if r.Removed || r.stood != "" || r.State.Request == nil {
			continue
		}
		for _, p := range r.places {
			if set := u.sets.Sets[p.Key]; len(set.Gone) > 0 && set.keepsOut(r.report()) {
				u.Remove(r, true)
				r.places = nil
				break
			}
		}
	}
}

// bury notes the reports that go, and has the log records and scores of a span or call go with it.
func (u *uniting) bury(changed []*Record) ([]*Record, error) {
	for _, r := range changed {
		if !r.Buried || !r.existed {
			continue
		}
		report := r.report()
		for _, p := range r.placed {
			// Its parent stays, and so do others that wait for the same span or call.
			if p.Role == reports.Below || r.State.Request == nil && r.State.hasLogs() {
				continue
			}
			if r.State.Request != nil {
				u.sets.Sets[p.Key].bury(report, u.Deleted)
			}
			attached, err := u.leftAlone(p.Key)
			if err != nil {
				return changed, err
			}
			for _, with := range attached {
				u.Remove(with, true)
				with.find()
				if err := u.load(with.keys()); err != nil {
					return changed, err
				}
				changed = append(changed, with)
			}
		}
	}

	return changed, nil
}

// leftAlone returns the log records and scores under a key if nothing else is there any more.
func (u *uniting) leftAlone(key UUID) (attached []*Record, err error) {
	for _, role := range attachedTo[reports.Log] {
		if found, err := u.at(key, role); err != nil || len(found) > 0 {
			return nil, err
		}
	}
	for _, role := range []reports.Role{reports.Log, reports.Scores} {
		found, err := u.at(key, role)
		if err != nil {
			return nil, err
		}
		attached = append(attached, found...)
	}

	return attached, nil
}

// place puts a record into the sets of its places, and takes it out of others.
func (u *uniting) place(r *Record) {
	for _, p := range r.in {
		if !slices.Contains(r.places, p) {
			u.sets.Sets[p.Key].put(r.ID, p.Role, false)
		}
	}
	r.in = r.places
	for _, p := range r.places {
		u.loose = append(u.loose, u.sets.Sets[p.Key].put(r.ID, p.Role, true)...)
	}
}

// at returns the records of a set in a role, which it loads: those that are there.
func (u *uniting) at(key UUID, role reports.Role) (found []*Record, err error) {
	if err := u.load([]UUID{key}); err != nil {
		return nil, err
	}
	ids, _ := u.sets.Sets[key].in(role)
	found, err = u.records(ids)

	return slices.DeleteFunc(found, func(r *Record) bool {
		return r.Removed || !slices.Contains(r.places, reports.Place{Key: key, Role: role})
	}), err
}

// records returns records by their ids, which it loads unless the group has them.
func (u *uniting) records(ids []UUID) (found []*Record, err error) {
	var missing []*Record
	for _, id := range ids {
		r := u.Record(u.account, id)
		if r == nil {
			r, err = u.Add(u.account, id.String())
			if err != nil {
				return nil, err
			}
			missing = append(missing, r)
		}
		found = append(found, r)
	}
	if len(missing) > 0 {
		err = u.loader.Load(missing)
	}

	return found, err
}

// touch notes that others have changed what a record shows.
func (r *Record) touch() {
	r.State.added = nil // no delta has it
	r.Changed, r.touched = true, true
}

// attach adds log records and scores to their spans and calls, and links requests to spans.
func (u *uniting) attach(changed []*Record) error {
	targets := slices.DeleteFunc(slices.Clone(changed), func(r *Record) bool { return r.Removed })
	for _, r := range changed {
		for _, p := range slices.Concat(r.placed, r.places) {
			for _, role := range attachedTo[p.Role] {
				found, err := u.at(p.Key, role)
				if err != nil {
					return err
				}
				targets = append(targets, found...)
			}
		}
	}

	// Log records first: once their span has come they are not calls, and have no response.
	slices.SortStableFunc(targets, func(a, b *Record) int {
		return cmp.Or(int(one(b.State.hasLogs())-one(a.State.hasLogs())), compareIDs(a.ID, b.ID))
	})
	for _, r := range slices.Compact(targets) {
		if err := u.attachTo(r); err != nil {
			return err
		}
	}

	return nil
}

// attachedTo are the roles whose records show something of what has a role.
var attachedTo = map[reports.Role][]reports.Role{
	reports.Log:     {reports.Other, reports.Span, reports.Named, reports.Response, reports.Foreign},
	reports.Scores:  {reports.Other, reports.Span, reports.Named, reports.Foreign},
	reports.Named:   {reports.Other, reports.Log, reports.Scores},
	reports.Other:   {reports.Named, reports.Log, reports.Scores},
	reports.Span:    {reports.Log, reports.Scores},
	reports.Foreign: {reports.Log, reports.Scores},

	// A judgement does not say which of several calls with a response id it is of: the first has it.
	reports.Response: {reports.Log, reports.Response},
}

func (u *uniting) attachTo(r *Record) error {
	var with []*Record // log records and scores
	var of *Record     // of the record, if it is one of these
	var linked *Record
	for _, p := range r.places {
		var roles []reports.Role
		switch p.Role {
		case reports.Log, reports.Scores:
			for _, role := range attachedTo[p.Role] {
				found, err := u.at(p.Key, role)
				if err != nil {
					return err
				}
				isSpan := role == reports.Other || role == reports.Span
				if len(found) > 0 && of == nil && (isSpan || r.State.Request == nil) {
					of = found[0]
				}
			}
		case reports.Span, reports.Other, reports.Named, reports.Foreign:
			roles = []reports.Role{reports.Log, reports.Scores}
		case reports.Response:
			if err := u.load([]UUID{p.Key}); err != nil {
				return err
			}
			if ids, _ := u.sets.Sets[p.Key].in(p.Role); len(ids) > 0 && ids[0] == r.ID {
				roles = []reports.Role{reports.Log}
			}
		}
		for _, role := range roles {
			found, err := u.at(p.Key, role)
			if err != nil {
				return err
			}
			with = append(with, found...)
		}
		other, err := u.linkedAt(r, p)
		if err != nil {
			return err
		}
		linked = cmp.Or(other, linked)
	}

	slices.SortFunc(with, func(a, b *Record) int { return compareIDs(a.ID, b.ID) })
	with = slices.Compact(with)
	r.setStepOf(of)
	r.setLink(linked)
	r.setGiven(with)

	if err := u.join(r, with); err != nil {
		return err
	}
	before := r.places
	if slices.Equal(before, r.State.places()) {
		return nil
	}
	r.find()
	if err := u.load(r.keys()); err != nil {
		return err
	}
	u.place(r)

	// A judgement of its response may be another's now.
	for _, p := range slices.Concat(before, r.places) {
		if ids, _ := u.sets.Sets[p.Key].in(reports.Log); p.Role != reports.Response || len(ids) == 0 {
			continue
		}
		for _, role := range attachedTo[p.Role] {
			found, err := u.at(p.Key, role)
			for _, r := range found {
				err = cmp.Or(err, u.attachTo(r))
			}
			if err != nil {
				return err
			}
		}
	}

	return nil
}

// linkedAt returns what of a place is linked to a record: to a request the span that an SDK sent of it, to
// such a span the request.
func (u *uniting) linkedAt(r *Record, p reports.Place) (*Record, error) {
	role := reports.Other
	switch {
	case p.Role == reports.Other && r.State.Span.Value.LoggedAs != "":
		role = reports.Named
	case p.Role != reports.Named:
		return nil, nil
	}
	found, err := u.at(p.Key, role)
	i := slices.IndexFunc(found, func(other *Record) bool {
		span, request := other, r
		if role == reports.Named {
			span, request = r, other
		}
		as := span.State.Span.Value.LoggedAs
		return as != "" && strings.EqualFold(as, request.State.Request.Value.SpanID)
	})
	if i < 0 {
		return nil, err
	}

	return found[i], err
}

// setStepOf notes of which record the log records or scores are.
func (r *Record) setStepOf(of *Record) {
	if !r.State.hasLogs() || r.State.Request != nil && of == nil && !r.State.IsStep() {
		return
	}
	var same *SameCall
	if of != nil {
		same = &SameCall{Head: of.State.RequestID}
	}
	r.setSame(same)
}

// Linked is the request that an SDK logged of a span, or that span.
type Linked struct {
	RecordID string `json:"record_id"` // of the other

	// Of the span.
	TraceID string `json:"trace_id,omitempty"`
	Name    string `json:"name,omitempty"`
}

func (r *Record) setLink(other *Record) {
	var link *Linked
	switch {
	case other == nil:
	case other.State.Span == nil:
		link = &Linked{RecordID: other.State.RequestID}
	default:
		s := &other.State.Span.Value
		link = &Linked{other.State.RequestID, s.TraceID, s.Name}
	}
	if !sameJSON(r.State.Linked, link) {
		r.State.Linked = link
		r.touch()
	}
}

// Given is what a record shows of the log records and scores of its span, which are other records.
type Given struct {
	Scores   Scores                     `json:"scores,omitempty"`
	Metadata map[string]Stamped[string] `json:"metadata,omitempty"`
	From     []string                   `json:"from,omitempty"` // the records whose scores have reasons
}

// givenMax bounds the scores that a record is given: it is written again with each.
const givenMax = rowScoresMax

func (r *Record) setGiven(with []*Record) {
	var given *Given
	for _, from := range with {
		if s := &from.State.State; len(s.Scores)+len(s.Metadata) > 0 {
			if given == nil {
				given = new(Given)
			}
			given.add(s)
		}
	}
	if (given != nil || r.State.Given != nil) && !sameJSON(r.State.Given, given) {
		r.State.Given = given
		r.touch()
	}
}

func (g *Given) add(s *State) {
	reasoned := false
	for _, slot := range slices.SortedFunc(maps.Keys(s.Scores), wire.ScoreSlot.Compare) {
		if score := s.Scores[slot]; len(g.Scores) < givenMax {
			g.Scores = put(g.Scores, slot, score.Stamp, score.Value)
			reasoned = reasoned || score.Value.Details != nil && score.Value.Details.Reasoned
		}
	}
	for key, v := range s.Metadata {
		g.Metadata = put(g.Metadata, key, v.Stamp, v.Value)
	}

	if reasoned {
		g.From = append(g.From, s.RequestID)
	}
}

// sameJSON compares as what is stored.
func sameJSON(a, b any) bool {
	x, errA := json.Marshal(a)
	y, errB := json.Marshal(b)

	return errA == nil && errB == nil && string(x) == string(y)
}
