package archive

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"promptspool/api/calls"
	"promptspool/api/calls/otel"
	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// Several parties may report one call: an app that logs it, its framework's instrumentation, that
// of the provider's client, a gateway. Each report is a separate record. The provider's response id
// brings them together, but it does not identify a call: relays mint it from the time, and caches
// return it again. So records with the same id are of one call only if their times overlap and
// nothing that both say differs.
//
// A Store keeps a CallSet under each id and changes it in the transaction that changes the records.
// Whichever came first, the states of a set's records alone decide which of them are one call.

// Bounds of what is brought together.
const (
	responseIDMin  = 20       // characters; shorter ids repeat
	callReportsMax = 16       // records with one id; more mean that it identifies nothing
	callWeightMax  = 64 << 10 // of a record's state: all of a set may be in memory
	callSlack      = 2 * time.Second
)

// CallSet is what a Store keeps under a response id (State.CallKey): its records. The zero value is
// an empty set, which is not stored.
type CallSet struct {
	Records []UUID // in order; nil once there were more than callReportsMax
	Count   int    // how many there are

	// Trace is what a set under the key of a trace has in place of records.
	Trace *TraceContext

	Revision int64 // of what the Store keeps, 0 if that is nothing
	Changed  bool
}

// Encode returns the stored value of a set, nil if it is empty. That is how many records there are,
// and their ids, or, of a trace, 0 and its context.
func (c *CallSet) Encode() (value []byte) {
	if c.Count == 0 && c.Trace == nil {
		return nil
	}

	value = binary.AppendUvarint(nil, uint64(c.Count))
	for _, id := range c.Records {
		value = append(value, id[:]...)
	}
	if c.Trace != nil {
		text, _ := json.Marshal(c.Trace)
		value = append(value, text...)
	}

	return value
}

// DecodeCallSet reads what Encode returned.
func DecodeCallSet(value []byte) (c CallSet) {
	n, size := binary.Uvarint(value)
	c.Count = int(n)
	rest := value[max(size, 0):]
	if c.Count == 0 && len(rest) > 0 {
		_ = json.Unmarshal(rest, &c.Trace)
		return c
	}
	for id := range slices.Chunk(rest, len(UUID{})) {
		c.Records = append(c.Records, UUID(id))
	}

	return c
}

func compareIDs(a, b UUID) int { return slices.Compare(a[:], b[:]) }

// put adds a record to the set, or takes it out. It returns the records that the set no longer
// brings together, because there are too many of them now.
func (c *CallSet) put(id UUID, in bool) (apart []UUID) {
	i, has := slices.BinarySearchFunc(c.Records, id, compareIDs)
	if has == in && !c.crowded() {
		return nil
	}

	c.Changed = true
	switch {
	case c.crowded() && in:
		c.Count++
	case c.crowded():
		c.Count--
	case in:
		c.Records, c.Count = slices.Insert(c.Records, i, id), c.Count+1
	default:
		c.Records, c.Count = slices.Delete(c.Records, i, i+1), c.Count-1
	}
	if len(c.Records) > callReportsMax {
		apart, c.Records = c.Records, nil
	}

	return apart
}

func (c *CallSet) crowded() bool { return c.Count > len(c.Records) }

// CallKey returns the key of the record's CallSet; ok is false if it is in none. The key begins as
// the ids of the record's week do, so that a set goes with its week.
func (s *State) CallKey() (key UUID, ok bool) {
	if s.Request == nil || s.Weight() > callWeightMax {
		return key, false
	}

	return callKey(s.RequestID, &s.Request.Value, s.span())
}

// Keys returns the keys of the sets that folding the event will mostly ask for.
func (e *Event) Keys() (keys []UUID) {
	s := e.alone()
	if e.Request != nil {
		if key, ok := callKey(e.RequestID, e.Request, s.span()); ok {
			keys = append(keys, key)
		}
	}
	if s.takesContext() || s.context() != nil {
		if key, ok := s.traceKey(); ok {
			keys = append(keys, key)
		}
	}

	return keys
}

// callKey returns the key of a call's set. Reports of one span without the provider's id, such as the
// app's own and that of its instrumentation, are brought together by the span.
func callKey(requestID string, r *Request, span *Span) (key UUID, ok bool) {
	id, ok := ParseUUID(requestID)
	switch {
	case !ok:
		return key, false
	case len(r.ResponseID) >= responseIDMin:
		return keyOf(r.ResponseID, id.Time()), true
	case span == nil || span.TraceID == "" || span.IsLog:
		return key, false
	}

	return keyOf(otel.SharedID+span.TraceID+":"+span.SpanID, id.Time()), true
}

// callWeeks is in how many weeks, the last being that of the evaluation, a call is looked for.
const callWeeks = 5

// CallKeys returns the keys under which a call may be that was judged at a moment.
func CallKeys(responseID string, at time.Time) (keys []UUID) {
	for i := range callWeeks {
		keys = append(keys, keyOf(responseID, at.Add(-time.Duration(i)*week)))
	}

	return keys
}

const week = 7 * 24 * time.Hour

// keyOf returns the key of the calls of a week with a response id.
func keyOf(responseID string, at time.Time) (key UUID) {
	sum := sha256.Sum256([]byte(responseID))
	copy(key[6:], sum[:])
	monday := at.Truncate(week).UnixMilli() // Go's zero time is a Monday
	copy(key[:6], binary.BigEndian.AppendUint64(nil, uint64(max(monday, 0)))[2:])

	return key
}

// SameCall is what a record knows of the others that report the same call. It derives from all of
// them: Group.Unite sets it.
type SameCall struct {
	Head string `json:"head,omitempty"` // the record that stands for the call; "" in that one

	// Of the head: the other records, the first of which says most, and what the record shows
	// with what they add.
	Others   []string                           `json:"others,omitempty"`
	Shown    *Request                           `json:"shown,omitempty"`
	Metadata map[string]string                  `json:"metadata,omitempty"`
	Scores   map[wire.ScoreSlot]wire.ScoreValue `json:"scores,omitempty"`
}

// equals compares as what is stored.
func (c *SameCall) equals(other *SameCall) bool {
	a, errA := json.Marshal(c)
	b, errB := json.Marshal(other)

	return errA == nil && errB == nil && string(a) == string(b)
}

// IsStep reports whether another record stands for the call that this one reports. No list of
// requests shows it then: it is a step, like a span that is not a call.
func (s *State) IsStep() bool { return s.Same != nil && s.Same.Head != "" }

// shown returns what the record shows of its request, which it must have.
func (s *State) shown() *Request {
	if s.Same != nil && s.Same.Shown != nil {
		return s.Same.Shown
	}

	return &s.Request.Value
}

// callTimes returns when the call was, as far as the record knows.
func (s *State) callTimes() (start, end time.Time) {
	start = s.ListTime()
	if end = start; s.Request.Value.End != nil && s.Request.Value.End.After(start) {
		end = *s.Request.Value.End
	}

	return start, end
}

// fits reports whether two records with one response id may be of the same call.
func fits(a, b *State) bool {
	aStart, aEnd := a.callTimes()
	bStart, bEnd := b.callTimes()
	if aStart.After(bEnd.Add(callSlack)) || bStart.After(aEnd.Add(callSlack)) {
		return false
	}

	x, y := &a.Request.Value, &b.Request.Value
	switch {
	case strings.HasPrefix(x.ResponseID, otel.SharedID):
		return true // of one library, each of whose reports has a part of what came back
	case len(x.ResponseID) < responseIDMin && !x.Traced && !y.Traced:
		return false // calls that an app logged with the span around them
	}
	if x.OutputTokens != nil && y.OutputTokens != nil && *x.OutputTokens != *y.OutputTokens {
		return false
	}
	if f, g := calls.NormalFinish(x.FinishReason), calls.NormalFinish(y.FinishReason); f != "" && g != "" && f != g {
		return false
	}
	if len(x.Tools)+len(y.Tools) > 0 { // whose arguments each library writes in its own way
		return x.OutputShape == "" || y.OutputShape == "" || slices.Equal(x.Tools, y.Tools)
	}

	// Without an output, the excerpt is that of an error, which each library tells in its own words.
	return x.OutputShape == "" || y.OutputShape == "" || x.OutputExcerpt == y.OutputExcerpt
}

// byHead orders the records of one call: the one that stands for it first.
func byHead(a, b *Record) int {
	x, y := &a.State.Request.Value, &b.State.Request.Value
	aStart, aEnd := a.State.callTimes()
	bStart, bEnd := b.State.callTimes()
	first := func(a, b bool) int { return int(one(b) - one(a)) }

	return cmp.Or(
		first(!x.Traced, !y.Traced),
		first(x.Turns > 0 && x.OutputShape != "", y.Turns > 0 && y.OutputShape != ""),
		first(x.OutputShape != "", y.OutputShape != ""), // figures are added, content is not
		first(x.hasUsage(), y.hasUsage()),
		first(x.Turns > 0, y.Turns > 0),
		bStart.Compare(aStart), // the innermost
		aEnd.Compare(bEnd),
		compareIDs(a.ID, b.ID))
}

// takeUsage copies the tokens of another request.
func (r *Request) takeUsage(o *Request) {
	r.InputTokens, r.OutputTokens = o.InputTokens, o.OutputTokens
	r.CachedTokens, r.CacheWriteTokens, r.CacheWriteHour = o.CachedTokens, o.CacheWriteTokens, o.CacheWriteHour
	r.ReasoningTokens, r.AudioInput, r.AudioOutput = o.ReasoningTokens, o.AudioInput, o.AudioOutput
	r.CachedAudio = o.CachedAudio
}

func (r *Request) hasUsage() bool { return r.InputTokens != nil || r.OutputTokens != nil }

// callsOf divides records with one response id into calls: those that fit, directly or by others.
func callsOf(records []*Record) (found [][]*Record) {
	for _, r := range records {
		joined, rest := []*Record{r}, found[:0]
		for _, call := range found {
			if slices.ContainsFunc(call, func(o *Record) bool { return fits(&r.State.State, &o.State.State) }) {
				joined = append(joined, call...)
			} else {
				rest = append(rest, call)
			}
		}
		found = append(rest, joined)
	}

	return found
}

// sameCall returns what the records of one call know of each other, in their order. It sorts them.
func sameCall(call []*Record) []*SameCall {
	same := make([]*SameCall, len(call))
	if len(call) == 1 {
		return same
	}

	slices.SortFunc(call, byHead)
	alone := func(r *Record) *State {
		s := r.State.State
		s.Same = nil // what it knew until now
		return &s
	}
	head := alone(call[0])
	shown := head.Request.Value
	same[0] = &SameCall{Shown: &shown}
	for i, r := range call[1:] {
		same[i+1] = &SameCall{Head: head.RequestID}
		same[0].Others = append(same[0].Others, r.State.RequestID)
		same[0].add(head, alone(r))
	}

	return same
}

// add adds what another record of the call says, and those before it do not.
func (c *SameCall) add(head, other *State) {
	shown, r := c.Shown, &other.Request.Value
	if shown.Model == "" { // nor does it know whose model it is
		shown.Model, shown.Provider, shown.FunctionName = r.Model, r.Provider, r.FunctionName
	}
	shown.FinishReason = cmp.Or(shown.FinishReason, r.FinishReason)
	shown.GroupID = cmp.Or(shown.GroupID, r.GroupID)
	shown.Tier = cmp.Or(shown.Tier, r.Tier)
	shown.TraceID = cmp.Or(shown.TraceID, other.TraceID())
	if !shown.hasUsage() {
		shown.takeUsage(r)
	}
	if shown.Turns == 0 {
		shown.Turns, shown.InputExcerpt = r.Turns, r.InputExcerpt
	}
	if shown.OutputShape == "" && r.OutputShape != "" {
		shown.OutputShape, shown.OutputExcerpt, shown.Tools = r.OutputShape, r.OutputExcerpt, r.Tools
	}
	if shown.Price == nil || r.PriceGiven && !shown.PriceGiven {
		shown.Price, shown.PriceGiven, shown.TablePrice = r.Price, r.PriceGiven, r.TablePrice
	}
	if shown.Start == nil || shown.End == nil {
		shown.Start, shown.End = r.Start, r.End
	}
	if len(shown.Tags) == 0 {
		shown.Tags = r.Tags
	}
	if link := other.TemplateLink(); shown.Prompt == nil && head.Prompt == nil && link != nil {
		shown.Prompt = &link.Value
	}

	own := head.metadata()
	for key, value := range other.metadata() {
		if _, has := own[key]; !has && c.Metadata[key] == "" && !rowcode.IsReference(value) {
			c.Metadata = with(c.Metadata, key, value)
		}
	}
	for slot, score := range other.Scores {
		_, own := head.Scores[slot]
		if _, has := c.Scores[slot]; !has && !own && score.Value.Kind != wire.ScoreNone {
			c.Scores = with(c.Scores, slot, score.Value.ScoreValue)
		}
	}
}

// with sets a key of a map that may be nil.
func with[K comparable, T any](m map[K]T, key K, value T) map[K]T {
	if m == nil {
		m = make(map[K]T)
	}
	m[key] = value

	return m
}

// Loader loads, within the transaction of a Group, what it asks for.
type Loader interface {
	// CallSets loads the sets under keys of an account into GroupAccount.Calls.
	CallSets(account string, keys []UUID) error

	// Load loads records that were added to the group.
	Load(records []*Record) error
}

// Unite brings the records of each call together that the changes of the group concern. A Store
// calls it when all else is decided.
func (g *Group) Unite(l Loader) error {
	g.asked = cmp.Or(g.asked, len(g.Records))
	concerned := map[string]map[UUID]bool{}
	concern := func(account string, key UUID) {
		if concerned[account] == nil {
			concerned[account] = map[UUID]bool{}
		}
		if key != (UUID{}) {
			concerned[account][key] = true
		}
	}
	var changed []*Record
	for _, r := range g.Records {
		if !r.Changed {
			continue
		}
		changed = append(changed, r)
		if r.call = r.callKey(); r.regroups() {
			concern(r.Account, r.Before.Call)
			concern(r.Account, r.call)
		}
		if key, ok := r.State.traceKey(); ok && (r.State.takesContext() || r.State.context() != nil) {
			concern(r.Account, key)
		}
	}

	for account, keys := range concerned {
		if err := g.unite(l, account, keys, changed); err != nil {
			return err
		}
	}

	return nil
}

// callKey is State.CallKey of what the group leaves of the record.
func (r *Record) callKey() (key UUID) {
	if !r.Removed {
		key, _ = r.State.CallKey()
	}
	return key
}

// regroups reports whether a changed record may be of another call now, or add something else to it.
func (r *Record) regroups() bool {
	return r.call != r.Before.Call || r.State.Same != nil || r.edited ||
		r.State.Request != nil && r.State.Request.ID != r.stood
}

// unite is Unite for the sets of one account.
func (g *Group) unite(l Loader, account string, keys map[UUID]bool, changed []*Record) error {
	sets := g.Accounts[account]
	var missing []UUID
	for key := range keys {
		if sets.Calls[key] == nil {
			missing = append(missing, key)
		}
	}
	slices.SortFunc(missing, compareIDs)
	if err := l.CallSets(account, missing); err != nil {
		return err
	}

	g.takeContexts(sets, slices.DeleteFunc(slices.Clone(changed), func(r *Record) bool { return r.Account != account }))

	var loose []UUID // no longer of a set that brings them together
	for _, r := range changed {
		before, now := r.Before.Call, r.call
		if r.Account != account || before == now {
			continue
		}
		if keys[before] {
			sets.Calls[before].put(r.ID, false)
		}
		if keys[now] {
			loose = append(loose, sets.Calls[now].put(r.ID, true)...)
		}
		loose = append(loose, r.ID)
	}
	if err := g.loadAll(l, account, sets, keys, loose); err != nil {
		return err
	}

	for _, id := range loose {
		g.Record(account, id).setSame(nil)
	}
	for key := range keys {
		var records []*Record
		for _, id := range slices.Clone(sets.Calls[key].Records) {
			if r := g.Record(account, id); r.call == key {
				records = append(records, r)
			} else {
				sets.Calls[key].put(id, false) // it went with its week
			}
		}
		for _, call := range callsOf(records) {
			for i, same := range sameCall(call) {
				call[i].setSame(same)
			}
		}
	}

	return nil
}

// loadAll loads the records of sets, and loose ones, unless the group has them.
func (g *Group) loadAll(l Loader, account string, sets *GroupAccount, keys map[UUID]bool, loose []UUID) error {
	ids := loose
	for key := range keys {
		ids = append(ids, sets.Calls[key].Records...)
	}

	var more []*Record
	for _, id := range ids {
		if g.Record(account, id) != nil {
			continue
		}
		r, err := g.Add(account, id.String())
		if err != nil {
			return err
		}
		more = append(more, r)
	}
	if len(more) == 0 {
		return nil
	}

	return l.Load(more)
}

// setSame notes what the record knows of others that report its call.
func (r *Record) setSame(same *SameCall) {
	if r.State.Same.equals(same) || r.Removed || len(r.State.History) == 0 {
		return
	}

	r.State.Same, r.State.added = same, nil // no delta has it
	r.Changed = true
}

// CallOf returns the record with all others that report the same call, which it loads.
func (g *Group) CallOf(l Loader, r *Record) (call []*Record, err error) {
	call = []*Record{r}
	if r.State.Same == nil {
		return call, nil
	}

	g.asked = cmp.Or(g.asked, len(g.Records)) // the others cannot be left for another transaction
	head, err := g.AddLoaded(l, r.Account, cmp.Or(r.State.Same.Head, r.State.RequestID))
	if err != nil || head.State.Same == nil {
		return call, err
	}
	for _, id := range slices.Concat(head.State.Same.Others, []string{head.State.RequestID}) {
		other, err := g.AddLoaded(l, r.Account, id)
		if err != nil {
			return nil, err
		}
		if other != r {
			call = append(call, other)
		}
	}

	return call, nil
}

// AddLoaded is Add, and loads the record unless the group has it.
func (g *Group) AddLoaded(l Loader, account, requestID string) (*Record, error) {
	known := len(g.Records)
	r, err := g.Add(account, requestID)
	if err == nil && len(g.Records) > known {
		err = l.Load([]*Record{r})
	}

	return r, err
}
