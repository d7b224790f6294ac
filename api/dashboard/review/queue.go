package review

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/wire"
)

// queue is the calls that a filter finds, in its order, with the scores to give to each of them.
type queue struct {
	Name      string // "" if it was opened from a list
	Filter    filter.Filter
	Scores    []score
	Reviewers int        // how many have to score a call; less than one is one
	values    url.Values // the queue as an address has it
}

// openQueue leads to a queue by its name.
func openQueue(c *frame.Exchange) error {
	return c.Redirect(address.Of("/review", url.Values{"queue": {c.PathValue("name")}}), "")
}

// queue reads the queue in an address: that of a name, or a list with the names of scores.
func (p *pages) queue(c *frame.Exchange, q url.Values) (queue, error) {
	v := queue{Name: q.Get("queue"), Filter: c.Filter(q)}
	v.values = v.Filter.Values()
	v.values.Del("col")
	names := strings.FieldsFunc(q.Get("scores"), func(r rune) bool { return r == ',' })
	if len(names) > 0 {
		v.values.Set("scores", strings.Join(names, ","))
	}
	if v.Name != "" {
		queues, err := p.queues.ReviewQueues(c.Context(), c.Identity())
		if err != nil {
			return queue{}, err
		}
		i := slices.IndexFunc(queues, func(q wire.ReviewQueue) bool { return q.Name == v.Name })
		if i < 0 {
			return queue{}, wire.Errorf(wire.CodeNotFound, "There is no queue %.200q.", v.Name)
		}
		v.values = url.Values{"queue": {v.Name}}
		v.Filter = c.Filter(url.Values{"filter": {queues[i].Filter}})
		names, v.Reviewers = queues[i].Scores, queues[i].Reviewers
	}

	defined, err := p.queues.ScoreDefinitions(c.Context(), c.Identity())
	v.Scores = scoresOf(names, defined)

	return v, err
}

// asks reports whether a score is one of those to give.
func (q *queue) asks(name string) bool {
	return slices.ContainsFunc(q.Scores, func(s score) bool { return s.Name == name })
}

// done reports whether a call needs no more scores from a reviewer: because of theirs, or of enough others'.
func (q *queue) done(r *wire.Row, reviewer string) bool {
	given := map[string]int{}
	for _, s := range r.Scores {
		if isPerson := strings.Contains(s.Author, "@"); isPerson && q.asks(s.Name) {
			given[s.Author]++
		}
	}

	whole := 0
	for _, n := range given {
		if n == len(q.Scores) {
			whole++
		}
	}

	return given[reviewer] == len(q.Scores) || whole >= max(q.Reviewers, 1)
}

// place is how far a reviewer has come in a queue: past a call on the page at a cursor.
type place struct {
	cursor string // "" is the beginning of the list
	past   string // the call; "" is the beginning of the page
	done   int    // calls before the page that are done
}

func (p place) String() string { return strconv.Itoa(p.done) + "." + p.past + "." + p.cursor }

func readPlace(text string) (p place) {
	done, rest, _ := strings.Cut(text, ".")
	p.done, _ = strconv.Atoi(done)
	p.past, p.cursor, _ = strings.Cut(rest, ".")

	return p
}

// found is the next call of a queue.
type found struct {
	call        string // "" if there is none
	at          place  // past the call, or where the search stopped
	done, total int    // of the list, as far as the search has come
	more        bool   // there are more than total
	stopped     bool   // after pagesMax
}

// Bounds of a search for the next call.
const (
	pageRows = 200
	pagesMax = 20
)

// find returns the next call of a sitting that the reviewer has to score and nobody else looks at. It is
// theirs for two minutes.
func (p *pages) find(c *frame.Exchange, q *queue, s *sitting) (f found, err error) {
	at, again := s.from, s.from == place{}
	for n := range pagesMax {
		page, err := q.Filter.List(c.Context(), p.records, c.Identity(),
			wire.Search{Cursor: at.cursor, PerPage: pageRows, Quick: n > 0})
		if err != nil {
			return f, err
		}
		if n == 0 {
			f.total, f.more = page.Total, page.TotalIsLowerBound
		}

		// The rows before the place count, too. If its call has left the list, the whole page is open.
		var open []string
		past := slices.IndexFunc(page.Items, func(r wire.Row) bool { return r.RequestID == at.past })
		f.done = at.done
		for i := range page.Items {
			id := page.Items[i].RequestID
			if q.done(&page.Items[i], c.User.Email) {
				f.done++
			} else if i > past && !slices.Contains(s.trail, id) {
				open = append(open, id)
			}
		}

		if len(open) > 0 || page.NextCursor == nil { // at the end, the call that they had is free
			f.call, err = p.queues.Claim(c.Context(), c.User.AccountID, c.User.Email, open)
			if err != nil || f.call != "" {
				f.at = place{at.cursor, f.call, at.done}
				return f, err
			}
		}
		switch {
		case page.NextCursor != nil:
			at = place{cursor: *page.NextCursor, done: f.done}
		case again:
			return f, nil
		default:
			at, again = place{}, true // calls that others looked at are perhaps free now
		}
	}
	f.at, f.stopped = at, true

	return f, nil
}

// sitting is what one reviewer has done so far. The address has it.
type sitting struct {
	from  place    // where the next call is looked for
	trail []string // the last calls that were saved or skipped
	saved int      // how many were saved
}

// trailMax bounds how many steps can be taken back.
const trailMax = 10

func readSitting(q url.Values) sitting {
	s := sitting{from: readPlace(q.Get("from")), trail: strings.Fields(q.Get("trail"))}
	s.saved, _ = strconv.Atoi(q.Get("saved"))

	return s
}

// at returns the queue with a sitting, as an address has them.
func (q *queue) at(s sitting) url.Values {
	v := maps.Clone(q.values)
	v.Set("from", s.from.String())
	v.Set("trail", strings.Join(s.trail[max(len(s.trail)-trailMax, 0):], " "))
	v.Set("saved", strconv.Itoa(s.saved))

	return v
}

// back takes the last step back, and returns its call; "" if there is none.
func (s *sitting) back() (call string) {
	if last := len(s.trail) - 1; last >= 0 {
		call, s.trail = s.trail[last], s.trail[:last]
	}

	return call
}
