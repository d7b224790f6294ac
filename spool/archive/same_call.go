package archive

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"promptspool/api/calls"
	"promptspool/api/calls/otel"
	"promptspool/api/calls/otel/dialect"
	"promptspool/api/wire"
	"promptspool/spool/archive/reports"
	"promptspool/spool/archive/rowcode"
)

// SameCall is what a record knows of the others that report the same call. It derives from all of
// them: Group.Unite sets it.
type SameCall struct {
	Head string `json:"head,omitempty"` // the record that stands for the call; "" in that one
	Step bool   `json:"step,omitempty"` // several calls are directly below it: it is none itself

	// Of the head: the other records, the first of which says most, and what the record shows
	// with what they add.
	Others   []string                           `json:"others,omitempty"`
	Shown    *Request                           `json:"shown,omitempty"`
	Metadata map[string]string                  `json:"metadata,omitempty"`
	Scores   map[wire.ScoreSlot]wire.ScoreValue `json:"scores,omitempty"`
	Words    string                             `json:"words,omitempty"` // the other whose words find the call, too
}

// IsStep reports whether another record stands for the call that this one reports. No list of
// requests shows it then: it is a step, like a span that is not a call.
func (s *State) IsStep() bool { return s.Same != nil && (s.Same.Head != "" || s.Same.Step) }

// shown returns what the record shows of its request, which it must have.
func (s *State) shown() *Request {
	if s.Same != nil && s.Same.Shown != nil {
		return s.Same.Shown
	}

	return &s.Request.Value
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

func (r *Request) hasUsage() bool { return r.Tokens.Input != nil || r.Tokens.Output != nil }

// sameCall returns what the records of one call know of each other, in their order. It sorts them.
// There is one at least.
func sameCall(call []*Record) []*SameCall {
	same := make([]*SameCall, len(call))
	if len(call) == 1 {
		return same
	}

	slices.SortFunc(call, byHead)
	alone := func(r *Record) *State {
		s := r.State.State
		// It may be of another call now.
		s.Same = nil
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
	// Nor does it know whose model it is.
	if shown.Model == "" {
		shown.Model, shown.Provider, shown.FunctionName = r.Model, r.Provider, r.FunctionName
	}
	shown.FinishReason = cmp.Or(shown.FinishReason, r.FinishReason)
	shown.GroupID = cmp.Or(shown.GroupID, r.GroupID)
	shown.Tier = cmp.Or(shown.Tier, r.Tier)
	shown.TraceID = cmp.Or(shown.TraceID, other.TraceID())
	if !shown.hasUsage() {
		shown.Tokens = r.Tokens
	}
	if shown.Turns == 0 && r.Turns > 0 {
		shown.Turns, shown.InputExcerpt = r.Turns, r.InputExcerpt
		c.Words = cmp.Or(c.Words, other.RequestID)
	}
	if shown.OutputShape == "" && r.OutputShape != "" {
		shown.OutputShape, shown.OutputExcerpt, shown.Tools = r.OutputShape, r.OutputExcerpt, r.Tools
		c.Words = cmp.Or(c.Words, other.RequestID)
	}
	if shown.Price == nil || r.PriceGiven && !shown.PriceGiven {
		shown.Price, shown.PriceGiven, shown.TablePrice = r.Price, r.PriceGiven, r.TablePrice
	}
	if shown.Start == nil || shown.End == nil {
		shown.Start, shown.End = r.Start, r.End
	}
	for _, tag := range r.Tags {
		if !slices.Contains(shown.Tags, tag) {
			shown.Tags = append(shown.Tags[:len(shown.Tags):len(shown.Tags)], tag)
		}
	}
	if link := other.TemplateLink(); shown.Prompt == nil && head.Prompt == nil && link != nil {
		shown.Prompt = &link.Value
	}

	own := head.Whole()
	for key, value := range other.Whole() {
		if _, has := own[key]; !has && c.Metadata[key] == "" && !rowcode.IsReference(value) {
			c.Metadata = with(c.Metadata, key, value)
		}
	}
	shows := head.allScores()
	for slot, score := range other.allScores() {
		_, own := shows[slot]
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

// setSame notes what the record knows of others that report its call.
func (r *Record) setSame(same *SameCall) {
	if !r.Removed && len(r.State.History) > 0 && !sameJSON(r.State.Same, same) {
		r.State.Same = same
		r.touch()
	}
}

// CallOf returns the record with all others that report the same call, which it loads.
func (g *Group) CallOf(l Loader, r *Record) (call []*Record, err error) {
	call = []*Record{r}
	if r.State.Same == nil || r.State.Same.Step || r.State.hasLogs() {
		return call, nil
	}

	// The others cannot be left for another transaction.
	g.asked = cmp.Or(g.asked, len(g.Records))
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

// divide finds the calls that the changed records are, or were reports of.
func (u *uniting) divide(changed []*Record) error {
	work, err := u.records(u.loose)
	if err != nil {
		return err
	}
	// Also those that others have changed, by their trace or by log records.
	changed = slices.Clip(changed)
	for _, r := range u.Records {
		if r.Account == u.account && r.touched {
			changed = append(changed, r)
		}
	}
	for _, r := range changed {
		work = append(work, r)
		for _, p := range slices.Concat(r.placed, r.places) {
			for _, role := range reports.Neighbours(p.Role) {
				found, err := u.at(p.Key, role)
				if err != nil {
					return err
				}
				work = append(work, found...)
			}
		}
	}

	done := make(map[*Record]bool)
	for len(work) > 0 {
		r := work[0]
		work = work[1:]
		if done[r] {
			continue
		}
		done[r] = true
		more, err := u.divideFrom(r, done)
		if err != nil {
			return err
		}
		work = append(work, more...)
	}

	return nil
}

// divideFrom finds the calls among the reports that evidence connects with one. It returns those that
// were of a call with them until now.
func (u *uniting) divideFrom(r *Record, done map[*Record]bool) (former []*Record, err error) {
	former, err = u.CallOf(u.loader, r)
	if err != nil || r.Removed || r.State.Request == nil || r.State.hasLogs() && r.State.IsStep() {
		return former, err
	}

	calls, err := reports.CallsWith(u.reportOf(r), u)
	for _, call := range calls {
		var of []*Record
		for _, report := range call.Reports {
			r := u.Record(u.account, report.ID)
			of, done[r] = append(of, r), true
			more, callErr := u.CallOf(u.loader, r)
			err = cmp.Or(err, callErr)
			former = append(former, more...)
		}
		if err != nil {
			return nil, err
		}
		same := sameCall(of)
		if call.Step {
			same[0] = &SameCall{Step: true}
		}
		for i, r := range of {
			r.setSame(same[i])
		}
	}

	return former, err
}

// Under implements reports.Finder.
func (u *uniting) Under(p reports.Place) (found []*reports.Report, crowded bool, err error) {
	records, err := u.at(p.Key, p.Role)
	if err != nil {
		return nil, false, err
	}
	for _, r := range records {
		found = append(found, u.reportOf(r))
	}
	_, crowded = u.sets.Sets[p.Key].in(p.Role)

	return found, crowded, nil
}

// reportOf returns the record as a report of a call: always the same one.
func (u *uniting) reportOf(r *Record) *reports.Report {
	if u.reports[r] == nil {
		u.reports[r] = r.report()
	}
	return u.reports[r]
}

// report returns the record as a report of a call.
func (r *Record) report() *reports.Report {
	s := &r.State
	report := &reports.Report{ID: r.ID, Places: r.places, Key: s.apiKey(), Trace: s.TraceID()}
	if r.Removed {
		report.Places = r.placed
	}
	if s.Request == nil {
		return report
	}

	v := &s.Request.Value
	report.Part = v.Traced && strings.HasPrefix(v.ResponseID, otel.SharedID)
	if len(v.ResponseID) >= responseIDMin {
		report.Response = v.ResponseID
	}
	report.Start, report.End = s.callTimes()
	for _, model := range []string{v.Model, v.Asked} {
		// Azure knows a model by the name of a deployment.
		isDeployment := strings.Contains(strings.ToLower(v.Provider), "azure") && (v.ModelAsked || model == v.Asked)
		if model != "" && !isDeployment {
			report.Models = append(report.Models, reports.NormalModel(model))
		}
	}
	report.Input, report.Finish = v.InputExcerpt, calls.NormalFinish(v.FinishReason)
	if v.Turns == 0 {
		report.Input = ""
	}
	// Without an output, the excerpt is that of an error, which each library tells in its own words.
	report.Answered, report.Failed = v.OutputShape != "", v.Status == "ERROR"
	report.Output, report.Tools = v.OutputExcerpt, v.Tools
	owner := s.owner()
	report.User, report.Session = owner[0], owner[1]
	report.Tokens = [2]*int64{v.Tokens.Input, v.Tokens.Output}

	report.Reporter = reports.Logged
	if s.Span != nil && v.Traced {
		report.Reporter = s.Span.Value.Scope
		if report.Reporter != "" {
			service, _ := s.shownValue(dialect.ServiceKey)
			report.Reporter += " in " + service
		}
	}
	if i := s.winner(); i >= 0 {
		report.Body, report.Accepted = s.History[i].Hash, s.History[i].AcceptedAt
	}

	return report
}

// owner returns the user and the session that the record names itself.
func (s *State) owner() (owner [2]string) {
	owner[0], _ = s.shownValue(dialect.UserKey)
	owner[1], _ = s.shownValue(dialect.SessionKey)

	return owner
}

// callTimes returns when the call was, as far as the record knows.
func (s *State) callTimes() (start, end time.Time) {
	start = s.ListTime()
	end = start
	if s.Request.Value.End != nil && s.Request.Value.End.After(start) {
		end = *s.Request.Value.End
	}

	return start, end
}
