package frame

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"promptspool/api/access"
	"promptspool/api/wire"
)

// Scoring is what the component of that name shows: scores, and the form that sets one.
type Scoring struct {
	Scores []wire.Score
	Action string  // where the form is sent; "" for readers who may not score
	Fields []Field // that are sent along
	Of     []Field // what the score may be of, if the reader chooses; named by Value
	Parts  string  // ids of the page's parts that a new score changes

	CSRF, Session string
}

// Field is a value in a form.
type Field struct{ Name, Value string }

// Scoring returns scores with the form for a route, which is sent to action.
func (c *Exchange) Scoring(route, action string, scores []wire.Score, fields ...Field) Scoring {
	s := Scoring{Scores: scores, Fields: fields, Parts: "scores", CSRF: c.CSRF(), Session: c.FormSession()}
	if c.User.Role.Includes(access.Role(route)) {
		s.Action = action
	}

	return s
}

// Recorder writes events. Package api documents the results.
type Recorder interface {
	Record(ctx context.Context, id wire.Identity, events []wire.Event) ([]wire.Result, error)
}

// SetScore sets the score in a form the way a program would: by an event. target has the members that
// name what it is of.
func (c *Exchange) SetScore(recorder Recorder, target map[string]any) error {
	score, err := strconv.Atoi(c.PostForm.Get("score"))
	if err != nil {
		return wire.Invalid(wire.FieldError{Field: "score", Reason: "must be an integer from 0 to 100"})
	}

	// The event has the body that a program would send, so the same checks apply to it: the archive
	// keeps whatever it is given.
	target["score"], target["name"] = score, strings.TrimSpace(c.PostForm.Get("name"))

	return c.RecordScores(recorder, target)
}

// RecordScores sets scores the way a program would: by events with these bodies of track-score.
func (c *Exchange) RecordScores(recorder Recorder, bodies ...map[string]any) error {
	var events []wire.Event
	for _, members := range bodies {
		body, err := json.Marshal(members)
		if err != nil {
			return err
		}
		object, err := wire.ParseObject(body)
		if err != nil {
			return err
		}
		w, err := wire.DecodeScore(object)
		if err != nil {
			return err
		}

		events = append(events, wire.Event{
			ID:         wire.NewID(),
			Kind:       wire.KindScore,
			RequestID:  w.RequestID,
			AcceptedAt: c.Now().UTC(),
			Sidecar:    "dashboard",
			Body:       body,
		})
	}

	results, err := recorder.Record(c.Context(), c.Identity(), events)
	if err != nil {
		return err
	}
	for _, result := range results {
		if result.Reason != "" {
			return wire.Errorf(wire.CodeInvalid, "The score was rejected: %s.", result.Reason)
		}
	}

	return nil
}

// Share is how much of a whole has a value, as the component of shares draws it.
type Share struct {
	Name, Class string
	Share       float64
	At, Width   float64 // of its part of the bar, in percent
}

// sharesMax is how many values have a color.
const sharesMax = 6

// Shares returns the shares of the values of a score that is a category or a boolean, else nil.
func Shares(s wire.ScoreSum) (all []Share) {
	switch s.Kind {
	case "boolean":
		all = []Share{{Name: "true", Class: "c1", Share: s.Mean}}
	case "category":
		for i, c := range s.Categories[:min(len(s.Categories), sharesMax)] {
			all = append(all, Share{Name: c.Value, Class: "c" + strconv.Itoa(i+1), Share: c.Share})
		}
	}

	at := 0.0
	for i := range all {
		all[i].At, all[i].Width = at, 100*all[i].Share
		at += all[i].Width
	}

	return all
}
