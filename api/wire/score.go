package wire

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"promptspool/api/wire/jsonscan"
)

// Score is how one author judges a target under one name.
type Score struct {
	ScoreSlot
	ScoreValue
	Details *ScoreDetails // nil if there are none, and in rows
}

// ScoreSlot is where a target keeps a score: a later one replaces it.
type ScoreSlot struct {
	Name   string
	Author string // who or what judged, as the caller says; "" if that is not said
}

// ScoreDetails are what only the record of a score shows. They are not changed once they are made.
type ScoreDetails struct {
	Source        string `json:"source,omitempty"` // one of ScoreSources, or ""
	AuthorVersion string `json:"author_version,omitempty"`
	Reason        string `json:"-"`                  // why; "" where only the event's body has it
	Reasoned      bool   `json:"reasoned,omitempty"` // the event's body has a reason
}

// ScoreKind is what a score's value is.
type ScoreKind uint8

// The kinds of scores.
const (
	ScoreInteger  ScoreKind = iota // an integer from 0 to 100, sent as score
	ScoreNumber                    // a number, sent as value
	ScoreBoolean                   // true or false, which count as 1 and 0
	ScoreCategory                  // a text
	ScoreNone                      // none any more: it was taken back
)

// ScoreSources are what may have judged.
var ScoreSources = []string{"human", "code", "model"}

// Bounds of typed scores.
const (
	ScoreNumberMax        = 1_000_000_000 // of a number, or of its negative
	ScoreCategoryRunesMax = 200
)

// ScoreValue is the value of a score. It is comparable. The JSON is that of states.
type ScoreValue struct {
	Kind   ScoreKind `json:"kind,omitempty"`
	Number float64   `json:"n,omitempty"`    // unless it is a category
	Text   string    `json:"text,omitempty"` // of a category
}

// IntegerScore returns a score that was sent as score.
func IntegerScore(name string, score int) Score {
	return Score{ScoreSlot: ScoreSlot{Name: name}, ScoreValue: ScoreValue{Number: float64(score)}}
}

// IsNumber reports whether the value is an integer or a number.
func (v ScoreValue) IsNumber() bool { return v.Kind <= ScoreNumber }

// JSON returns the value as callers send it.
func (v ScoreValue) JSON() any {
	switch v.Kind {
	case ScoreBoolean:
		return v.Number != 0
	case ScoreCategory:
		return v.Text
	case ScoreNone:
		return nil
	}

	return v.Number
}

// String returns the value as people read it.
func (v ScoreValue) String() string {
	switch v.Kind {
	case ScoreBoolean:
		return strconv.FormatBool(v.Number != 0)
	case ScoreCategory:
		return v.Text
	case ScoreNone:
		return "none"
	}

	return strconv.FormatFloat(v.Number, 'f', -1, 64)
}

// parseScoreValue reads a value as callers send it; ok is false for anything else.
func parseScoreValue(raw json.RawMessage) (v ScoreValue, ok bool) {
	switch text := string(raw); {
	case text == "null":
		return ScoreValue{Kind: ScoreNone}, true
	case text == "true":
		return ScoreValue{Kind: ScoreBoolean, Number: 1}, true
	case text == "false":
		return ScoreValue{Kind: ScoreBoolean}, true
	case text[0] == '"':
		return CategoryScore(jsonscan.Unquote(raw))
	default:
		x, err := strconv.ParseFloat(text, 64)
		return NumberScore(x), err == nil && math.Abs(x) <= ScoreNumberMax
	}
}

// NumberScore returns the value of a number, which must not be beyond ScoreNumberMax.
func NumberScore(x float64) ScoreValue {
	return ScoreValue{Kind: ScoreNumber, Number: x + 0} // no -0, which equals 0 and looks different
}

// CategoryScore returns the value of a text; ok is false if it is empty or too long.
func CategoryScore(text string) (v ScoreValue, ok bool) {
	text = strings.TrimSpace(text)
	f := fields{}
	f.bound("value", text, ScoreCategoryRunesMax)

	return ScoreValue{Kind: ScoreCategory, Text: text}, text != "" && len(f.errs) == 0
}

// Body adds the members with which a track-score sets the score to body.
func (s Score) Body(body map[string]any) {
	body["name"] = s.Name
	if s.Kind == ScoreInteger {
		body["score"] = s.Number
	} else {
		body["value"] = s.JSON()
	}

	d := s.details()
	for name, text := range map[string]string{
		"author": s.Author, "author_version": d.AuthorVersion, "source": d.Source, "reason": d.Reason,
	} {
		if text != "" {
			body[name] = text
		}
	}
}

func (s *Score) details() ScoreDetails {
	if s.Details == nil {
		return ScoreDetails{}
	}
	return *s.Details
}

// String returns the score in one word, without its author.
func (s Score) String() string { return s.Name + "=" + s.ScoreValue.String() }

// Reason returns why it was given; "" if unknown.
func (s Score) Reason() string { return s.details().Reason }

// ShownScore is the JSON of a Score.
type ShownScore struct {
	Name          string   `json:"name"`                     // the score's name
	Score         *float64 `json:"score,omitempty"`          // the score, from 0 to 100, if it was sent as score
	Value         any      `json:"value"`                    // a number, true, false or a text
	Author        string   `json:"author,omitempty"`         // who or what judged
	AuthorVersion string   `json:"author_version,omitempty"` // such as that of the model that judged
	Source        string   `json:"source,omitempty"`         // human, code or model
	Reason        string   `json:"reason,omitempty"`         // why; lists leave it out
}

// JSONSchemaAlias is for what describes the API.
func (Score) JSONSchemaAlias() any { return ShownScore{} }

// MarshalJSON writes a ShownScore.
func (s Score) MarshalJSON() ([]byte, error) {
	d := s.details()
	shown := ShownScore{
		Name: s.Name, Value: s.JSON(), Author: s.Author,
		AuthorVersion: d.AuthorVersion, Source: d.Source, Reason: d.Reason,
	}
	if s.Kind == ScoreInteger {
		shown.Score = &s.Number
	}

	return jsonscan.Marshal(shown)
}

// UnmarshalJSON reads a ShownScore.
func (s *Score) UnmarshalJSON(text []byte) error {
	shown := struct {
		ShownScore
		Value json.RawMessage `json:"value"`
	}{}
	if err := json.Unmarshal(text, &shown); err != nil {
		return err
	}

	*s = Score{ScoreSlot: ScoreSlot{shown.Name, shown.Author}}
	if shown.Score != nil {
		s.Number = *shown.Score
	} else if len(shown.Value) > 0 {
		s.ScoreValue, _ = parseScoreValue(shown.Value)
	}
	d := ScoreDetails{Source: shown.Source, AuthorVersion: shown.AuthorVersion, Reason: shown.Reason}
	if d != (ScoreDetails{}) {
		s.Details = &d
	}

	return nil
}

// CompareScores orders scores by name, then by author.
func CompareScores(a, b Score) int { return a.ScoreSlot.Compare(b.ScoreSlot) }

// Compare orders slots by name, then by author.
func (s ScoreSlot) Compare(other ScoreSlot) int {
	if s.Name != other.Name {
		return strings.Compare(s.Name, other.Name)
	}
	return strings.Compare(s.Author, other.Author)
}

// MarshalText makes a slot a key of JSON objects: the name alone or, with an author, both.
func (s ScoreSlot) MarshalText() ([]byte, error) {
	// An author has no NUL.
	if s.Author == "" && !strings.Contains(s.Name, "\x00") {
		return []byte(s.Name), nil
	}
	return []byte(s.Author + "\x00" + s.Name), nil
}

// UnmarshalText reads what MarshalText wrote.
func (s *ScoreSlot) UnmarshalText(text []byte) error {
	author, name, found := strings.Cut(string(text), "\x00")
	if !found {
		author, name = "", author
	}
	*s = ScoreSlot{name, author}

	return nil
}
