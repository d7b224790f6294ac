// Package seed makes 3,000 realistic calls of a support bot over the last 30 days, for scenes that try what people do
// all day.
//
// The set is made from a seed: its times must be relative to now, because "yesterday" has to find something
// whatever the date, and a few hundred lines are easier to review than megabytes. Two sets for the same time
// are the same, byte for byte; the one for demo.Base is what `up --demo` shows.
//
// Besides what is drawn at random, a set has what scenes count on; see the constants. Days are those of UTC.
package seed

import (
	"math/rand/v2"
	"slices"
	"time"

	"promptspool/api/wire"
)

// What each set has.
const (
	Calls     = 3000
	Failed    = 180 // of Calls
	Users     = 174 // user-1 to user-174, in the metadata as user_id
	Sessions  = 255 // in the metadata as session_id
	Customers = 8   // in the metadata as customer
	Traces    = 60  // of agents
	Traced    = 140 // calls in Traces, on top of Calls

	// YesterdayFailed calls of support/triage, version 3, failed yesterday, with a timeout. Others of it succeeded.
	YesterdayFailed = 9

	// OutageFailed calls of Anthropic's models failed within an hour, OutageDays ago: a spike in the chart.
	OutageFailed = 60
	OutageDays   = 6

	// PhraseAnswers is how many answers contain Phrase. Others have its words apart.
	PhraseAnswers = 3
	Phrase        = "purple elephant"

	// TalkUser had one conversation, the day before yesterday, of TalkTurns turns.
	TalkUser  = "user-42"
	TalkTurns = 5
)

// Set is what an account logged in 30 days.
type Set struct {
	Templates []Release
	Events    []wire.Event // calls in the order in which they ended, each followed by its scores
	Traces    []any        // each of them an element of resourceSpans
}

// Release is the body that publishes a version of a template.
type Release map[string]any

// maker makes a set. Everything is drawn from one source of random numbers, in one order.
type maker struct {
	*rand.Rand
	now   time.Time
	today time.Time // its first moment
	calls []*call
}

// New returns the set whose last call was just before now.
func New(now time.Time) Set {
	now = now.UTC().Truncate(time.Second)
	m := &maker{Rand: rand.New(rand.NewPCG(22, Calls)), now: now, today: now.Truncate(day)}

	m.pinned()
	for n := range Sessions {
		m.session(n)
	}
	for len(m.calls) < Calls {
		m.lone()
	}
	m.fail()
	m.rate()

	slices.SortStableFunc(m.calls, func(a, b *call) int { return a.ended().Compare(b.ended()) })

	return Set{Templates: releases(), Events: m.events(), Traces: m.traces()}
}

const day = 24 * time.Hour

// events returns the calls and their scores as a sidecar sends them.
func (m *maker) events() []wire.Event {
	var all []wire.Event
	add := func(kind wire.Kind, id string, at time.Time, body map[string]any) {
		all = append(all, wire.Event{
			ID:         m.id(at),
			Kind:       kind,
			RequestID:  id,
			AcceptedAt: at,
			Sidecar:    []string{"pod-1", "pod-2", "pod-3"}[m.IntN(3)],
			Body:       encode(body),
		})
	}

	for _, c := range m.calls {
		id := m.id(c.ended())
		add(wire.KindRequest, id, c.ended(), c.body())
		for _, s := range c.scores {
			scored := c.ended().Add(min(time.Minute, m.now.Sub(c.ended())))
			add(wire.KindScore, id, scored, map[string]any{"request_id": id, "name": s.Name, "score": s.Number})
		}
	}

	return all
}
