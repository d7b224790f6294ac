package reports

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Role is why something is under a key.
type Role byte

// The roles.
const (
	Response Role = 'r' // a report with the key's response id
	Span     Role = 's' // the report that is the key's span
	Named    Role = 'n' // a report that was logged with the ids of the key's span
	Below    Role = 'b' // a report whose parent is the key's span
	Other    Role = 'o' // another span
	Log      Role = 'l' // log records of the key's span, or judgements of the key's response
	Scores   Role = 'j' // scores of the key's span
	Foreign  Role = 'f' // a span or call of a key that may only log: only scores find it here
)

// Key is a week, and a span or a response id.
type Key = [16]byte

// Place is where something is found by others.
type Place struct {
	Key  Key
	Role Role
}

// Logged is the reporter of whatever came by REST.
const Logged = "REST"

// Report has the parts of a report that decide about its call. Those that are empty it does not name.
type Report struct {
	ID     [16]byte
	Places []Place

	Reporter string // an instrumentation in a service, or Logged; "" of a record of 0.1.0
	Key      string // the id of a key that may only log
	Trace    string
	Response string // the response id, if it is long enough
	Part     bool   // its response id is one that the parts of a call share

	Start, End time.Time
	Models     []string // normal names of what was asked for and of what answered
	Input      string   // the beginning of the last user text
	Output     string   // the beginning of the answer
	Answered   bool     // there is an output
	Tools      []string // the names of the tools that were called
	Finish     string   // in normal form
	Failed     bool
	User       string
	Session    string
	Tokens     [2]*int64 // of the input and the output
	Body       string    // the hash of what was logged
	Accepted   time.Time
}

// slack is what the clocks of two reporters may differ by.
const slack = 2 * time.Second

// retryMax is how long after a log the same one is a retry.
const retryMax = time.Minute

// contradicts reports whether two reports differ in something that one call has once.
func contradicts(a, b *Report) bool {
	switch {
	case a.Key != b.Key || !Overlap(a.Start, a.End, b.Start, b.End):
		return true
	case a.Part && b.Part && a.meets(b, Response, Response):
		// Each has a part of what came back.
		return false
	}

	// The id that parts of a call share is not the provider's.
	return a.Part == b.Part && differ(a.Response, b.Response) ||
		differ(a.User, b.User) || differ(a.Session, b.Session) || differ(a.Finish, b.Finish) ||
		a.Failed != b.Failed && (a.Failed && b.Answered || b.Failed && a.Answered) ||
		differInModel(a, b) || differInOutput(a, b) ||
		!begins(a.Input, b.Input) && !begins(b.Input, a.Input) ||
		(a.Trace == "" || a.Trace != b.Trace) && differInTokens(a, b)
}

// Overlap reports whether two spans of time do, as far as clocks can tell.
func Overlap(start, end, otherStart, otherEnd time.Time) bool {
	return !start.After(otherEnd.Add(slack)) && !otherStart.After(end.Add(slack))
}

// repeats reports whether the reporter of both reports two calls by them.
func (r *Report) repeats(other *Report) bool {
	switch {
	case r.Reporter == "" || r.Reporter != other.Reporter || r.Part && other.Part:
		return false
	case r.Reporter == Logged:
		gap := r.Accepted.Sub(other.Accepted).Abs()
		return r.Body == "" || r.Body != other.Body || gap > retryMax
	}

	return evidence(r, other) < byParent
}

// meets reports whether the reports are under one key in these roles.
func (r *Report) meets(other *Report, own, others Role) bool {
	return slices.ContainsFunc(r.Places, func(p Place) bool {
		return p.Role == own && slices.Contains(other.Places, Place{p.Key, others})
	})
}

// differ compares what both say.
func differ(a, b string) bool { return a != "" && b != "" && a != b }

func differInModel(a, b *Report) bool {
	same := func(model string) bool { return slices.Contains(b.Models, model) }
	return len(a.Models) > 0 && len(b.Models) > 0 && !slices.ContainsFunc(a.Models, same)
}

// differInOutput compares tools by their names, in any order. Each library writes arguments its own way.
func differInOutput(a, b *Report) bool {
	switch {
	case !a.Answered || !b.Answered:
		return false
	case len(a.Tools)+len(b.Tools) > 0:
		return !slices.Equal(slices.Sorted(slices.Values(a.Tools)), slices.Sorted(slices.Values(b.Tools)))
	}

	return solid(a.Output) != solid(b.Output)
}

func differInTokens(a, b *Report) bool {
	for i, n := range a.Tokens {
		if m := b.Tokens[i]; n != nil && m != nil && *n != *m {
			return true
		}
	}
	return false
}

// begins reports whether one text begins as another one.
func begins(text, with string) bool { return strings.HasPrefix(solid(text), solid(with)) }

// Beginning returns the first 100 characters of a text without blanks.
func Beginning(text string) string {
	text = solid(text)
	n := 0
	for i := range text {
		if n == 100 {
			return text[:i]
		}
		n++
	}

	return text
}

// solid returns a text without blanks, and without the sign that it was cut.
func solid(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, strings.TrimSuffix(text, "…"))
}

// byTime orders reports as they are taken.
func byTime(a, b *Report) int {
	if order := a.Start.Compare(b.Start); order != 0 {
		return order
	}
	return bytes.Compare(a.ID[:], b.ID[:])
}

var (
	vendor = regexp.MustCompile(`^(us|eu|apac|global|amazon|anthropic|meta|mistral|cohere|ai21|deepseek|openai)\.`)
	dated  = regexp.MustCompile(`([-@]([0-9]{8}|[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{3,4}|[0-9]{2}-[0-9]{2}|` +
		`latest|default)|-v[0-9]+(:[0-9]+)?|:latest)$`)
)

// NormalModel returns the name of a model without its provider, its date and its version, as one asks
// for it.
func NormalModel(name string) string {
	name = strings.ToLower(name[strings.LastIndex(name, "/")+1:])
	for range 2 {
		name = name[len(vendor.FindString(name)):]
	}
	for {
		shorter := name[:len(name)-len(dated.FindString(name))]
		if shorter == name || shorter == "" {
			return strings.ReplaceAll(name, ".", "-")
		}
		name = shorter
	}
}

// Bounds of what is brought together.
const (
	MembersMax = 16 // of one role under a key; more mean that the key identifies nothing
	namesMax   = 8  // spans and response ids of what evidence connects
)

// Call is the reports of one call.
type Call struct {
	Reports []*Report
	Step    bool // its only report is a span with several calls below it: that is none
}

// Finder finds reports by their places.
type Finder interface {
	// Under returns the reports in a place, each always as the same pointer. crowded reports whether there
	// are, or were, more than MembersMax: then they are not known.
	Under(p Place) (found []*Report, crowded bool, err error)
}

// CallsWith divides a report, and all others that evidence connects it with, into calls. If they are more
// than the bounds allow, each is a call, and perhaps not all are there.
func CallsWith(first *Report, f Finder) (calls []Call, err error) {
	step, err := isStep(first, f)
	if step || err != nil {
		return []Call{{[]*Report{first}, true}}, err
	}
	connected, err := connect(first, f)
	if err != nil {
		return nil, err
	}

	names := make(map[[10]byte]bool)
	for _, r := range connected {
		for _, p := range r.Places {
			names[[10]byte(p.Key[6:])] = true
		}
	}
	if len(connected) > MembersMax || len(names) > namesMax {
		for _, r := range connected {
			calls = append(calls, Call{Reports: []*Report{r}})
		}
		return calls, nil
	}

	return divide(inOrder(connected)), nil
}

// isStep reports whether different calls are directly below a span.
func isStep(r *Report, f Finder) (bool, error) {
	for _, p := range r.Places {
		if p.Role != Span {
			continue
		}
		below, crowded, err := f.Under(Place{p.Key, Below})
		if crowded || err != nil {
			return crowded, err
		}
		for i, a := range below {
			for _, b := range below[:i] {
				if !connects(a, b) || a.repeats(b) {
					return true, nil
				}
			}
		}
	}

	return false, nil
}

// How much speaks for two reports being of one call.
const (
	byNothing = iota
	byID
	byParent
	bySpan
)

// evidence returns what speaks for two reports being of one call.
func evidence(a, b *Report) int {
	switch {
	case a.meets(b, Span, Span) || a.meets(b, Span, Named) || b.meets(a, Span, Named) || a.meets(b, Named, Named) ||
		a.Part && b.Part && a.meets(b, Response, Response):
		return bySpan
	case a.meets(b, Span, Below) || b.meets(a, Span, Below):
		return byParent
	case a.meets(b, Response, Response):
		return byID
	}

	return byNothing
}

// connects reports whether something speaks for two reports being of one call, and nothing against it.
func connects(a, b *Report) bool { return evidence(a, b) > byNothing && !contradicts(a, b) }

// neighbours are the roles in which something is evidence beside a place.
var neighbours = map[Role][]Role{
	Response: {Response},
	Span:     {Span, Named, Below},
	Named:    {Span, Named},
	Below:    {Span},
}

// Neighbours returns the roles in which a report may be evidence for one that is in a role.
func Neighbours(role Role) []Role { return neighbours[role] }

// connect returns the reports that evidence connects with one, directly or by others: all of them, or
// more than the bounds allow.
func connect(first *Report, f Finder) (found []*Report, err error) {
	found = []*Report{first}
	for i := 0; i < len(found) && i <= MembersMax; i++ {
		for _, p := range found[i].Places {
			for _, role := range neighbours[p.Role] {
				others, _, err := f.Under(Place{p.Key, role})
				if err != nil {
					return nil, err
				}
				for _, other := range others {
					if slices.Contains(found, other) || !connects(found[i], other) {
						continue
					}
					step, err := isStep(other, f)
					if err != nil {
						return nil, err
					}
					if !step {
						found = append(found, other)
					}
				}
			}
		}
	}

	return found, nil
}

// inOrder orders connected reports by time, but each after one with which it has evidence.
func inOrder(connected []*Report) (ordered []*Report) {
	rest := slices.SortedFunc(slices.Values(connected), byTime)
	for len(rest) > 0 {
		next := slices.IndexFunc(rest, func(r *Report) bool {
			return slices.ContainsFunc(ordered, func(o *Report) bool { return connects(r, o) })
		})
		next = max(next, 0)
		ordered = append(ordered, rest[next])
		rest = slices.Delete(rest, next, next+1)
	}

	return ordered
}

// divide divides connected reports into calls. Each joins the call for which most speaks; none, if that
// is true of several.
func divide(connected []*Report) (calls []Call) {
	for _, r := range connected {
		best, most, several := 0, byNothing, false
		for i := range calls {
			switch speaks := evidenceOf(r, calls[i].Reports); {
			case speaks > most:
				best, most, several = i, speaks, false
			case speaks == most && most > byNothing:
				several = true
			}
		}
		if most == byNothing || several {
			calls = append(calls, Call{Reports: []*Report{r}})
			continue
		}
		calls[best].Reports = append(calls[best].Reports, r)
	}

	return calls
}

// evidenceOf returns what speaks for a report being of a call: nothing, if it contradicts another report
// of the call, or its reporter has reported that.
func evidenceOf(r *Report, call []*Report) (most int) {
	for _, other := range call {
		most = max(most, evidence(r, other))
	}
	for _, other := range call {
		// A span below one of the call's is within it, however deep.
		within := most >= byParent && r.Trace == other.Trace && r.Reporter != Logged
		if contradicts(r, other) || r.repeats(other) && !within {
			return byNothing
		}
	}

	return most
}
