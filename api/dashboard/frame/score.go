package frame

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
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
	Author        string // who sets a score

	Defined wire.ScoreDefinitions
}

// Field is a value in a form.
type Field struct{ Name, Value string }

// ReviewScore is the review of the form of Scoring.
var ReviewScore = Review("Set this score?", "Set", "name", "score", "set")

// Scoring returns scores with the form for a route, which is sent to action.
func (c *Exchange) Scoring(route, action string, scores []wire.Score, fields ...Field) Scoring {
	s := Scoring{Scores: scores, Fields: fields, Parts: "scores", CSRF: c.CSRF(), Session: c.FormSession(),
		Author: c.User.Email}
	// The page is of use without them.
	s.Defined, _ = c.ScoreDefinitions()
	if c.User.Role.Includes(access.Role(route)) {
		s.Action = action
	}

	return s
}

// ScoreDefinitions returns those of the project.
func (c *Exchange) ScoreDefinitions() (wire.ScoreDefinitions, error) {
	if c.frame.Scoring == nil {
		return nil, nil
	}
	return c.frame.Scoring.ScoreDefinitions(c.Context(), c.Identity())
}

// shownScore is a score with what its definition says.
type shownScore struct {
	wire.Score
	Min, Max *float64 // of its meter, if it has one
	Expected string   // if it does not fit
	TakeBack string   // what a button sends for that, as setScore has it
}

// Shown returns the scores as the component shows them.
func (s Scoring) Shown() (all []shownScore) {
	for _, score := range s.Scores {
		shown := shownScore{Score: score, TakeBack: setting(score.Name, score.Author, nil)}
		d := s.Defined.Of(score.Name)
		switch {
		case !d.Fits(score.ScoreValue):
			shown.Expected = d.Expected()
		case d != nil && score.IsNumber() && d.Min != nil && d.Max != nil:
			shown.Min, shown.Max = d.Min, d.Max
		case score.Kind == wire.ScoreInteger:
			shown.Min, shown.Max = new(0.0), new(100.0)
		}
		all = append(all, shown)
	}

	return all
}

// buttonsMax bounds the scores that are set by a button for each of their values.
const buttonsMax = 12

// buttons are the values that a defined score may have.
type buttons struct {
	wire.ScoreDefinition
	Values []button
}

type button struct {
	Text, Set string
	Given     bool
}

// Buttons returns the scores that one click sets.
func (s Scoring) Buttons() (all []buttons) {
	for _, d := range s.Defined {
		values := []any{true, false}
		if d.Kind != "boolean" {
			values = nil
		}
		for _, text := range d.Categories {
			values = append(values, text)
		}
		if len(values) == 0 || len(all) == buttonsMax {
			continue
		}

		b := buttons{ScoreDefinition: d}
		for _, v := range values {
			given := scoreIn(s.Scores, wire.ScoreSlot{Name: d.Name, Author: s.Author}).JSON() == v
			b.Values = append(b.Values, button{fmt.Sprint(v), setting(d.Name, "", v), given})
		}
		all = append(all, b)
	}

	return all
}

// scoreSet is what a button of the component sends.
type scoreSet struct {
	Name   string `json:"name"`
	Author string `json:"author,omitempty"`
	Value  any    `json:"value"`
}

func setting(name, author string, value any) string {
	// Texts and booleans always encode.
	text, _ := json.Marshal(scoreSet{name, author, value})
	return string(text)
}

// Scored reads the scores of what a score's event names by a member such as request_id. It fails for what
// does not exist, or is another project's: an event for that would be accepted and wait.
type Scored func(c *Exchange, of, id string) ([]wire.Score, error)

// SetScore sets or takes back the score in a form of the component, and shows the page to.
// A score that is set is the person's, whatever others have given: theirs are only taken back.
func (c *Exchange) SetScore(recorder wire.Recorder, read Scored, of, id, to string) error {
	before, err := read(c, of, id)
	if err != nil {
		return err
	}
	set, member := scoreSet{Name: strings.TrimSpace(c.PostForm.Get("name"))}, "value"
	if pressed := c.PostForm.Get("set"); pressed != "" {
		if err := json.Unmarshal([]byte(pressed), &set); err != nil {
			return wire.Invalid(wire.FieldError{Field: "set", Reason: "must be a JSON object"})
		}
	} else {
		defined, err := c.ScoreDefinitions()
		if err != nil {
			return err
		}
		text := strings.TrimSpace(c.PostForm.Get("score"))
		d := defined.Of(cmp.Or(set.Name, wire.DefaultScoreName))
		set.Value = Typed(text, d)
		if n, err := strconv.Atoi(text); err == nil && n >= 0 && n <= 100 && d == nil {
			set.Value, member = n, "score"
		}
	}
	if set.Value != nil {
		set.Author = c.User.Email
	}

	if err := c.RecordScores(recorder, before, map[string]any{
		of: id, "name": set.Name, "author": set.Author, "source": "human", member: set.Value,
	}); err != nil {
		return err
	}

	return c.Redirect(to, "scored")
}

// scoreIn returns the score that a slot holds; of the kind none if it holds none.
func scoreIn(scores []wire.Score, slot wire.ScoreSlot) wire.Score {
	i := slices.IndexFunc(scores, func(s wire.Score) bool { return s.ScoreSlot == slot })
	if i < 0 {
		return wire.Score{ScoreSlot: slot, ScoreValue: wire.ScoreValue{Kind: wire.ScoreNone}}
	}

	return scores[i]
}

// Typed returns what a person means: a number, true or false as JSON has them, or a text. The value of a
// category is always a text.
func Typed(text string, d *wire.ScoreDefinition) any {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil || d != nil && d.Kind == "category" {
		return text
	}
	switch v.(type) {
	case float64, bool:
		return v
	}
	return text
}

// RecordScores sets scores of one target the way a program would: by events with these bodies of
// track-score. The audit log says what was there before.
func (c *Exchange) RecordScores(recorder wire.Recorder, before []wire.Score, bodies ...map[string]any) error {
	defined, err := c.ScoreDefinitions()
	if err != nil {
		return err
	}
	target, changes := "", []string{}
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
		if err == nil {
			err = defined.Check(w.Score)
		}
		if err != nil {
			return err
		}

		was := scoreIn(before, w.Score.ScoreSlot).ScoreValue
		target = w.AuditTarget()
		changes = append(changes, fmt.Sprintf("%s by %s, was %s", w.Score, cmp.Or(w.Score.Author, "no author"), was))
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

	return c.Note(c.Context(), "set score", target, wire.AuditFilter(strings.Join(changes, "; ")))
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
