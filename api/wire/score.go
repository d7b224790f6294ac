package wire

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
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

// Short is String with at most four digits of a fraction.
func (v ScoreValue) Short() string {
	if v.IsNumber() {
		v.Number = math.Round(v.Number*1e4) / 1e4
	}
	return v.String()
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
		return ParseScoreNumber(text)
	}
}

// ParseScoreNumber reads a number; ok is false if it is none, or beyond ScoreNumberMax.
func ParseScoreNumber(text string) (v ScoreValue, ok bool) {
	x, err := strconv.ParseFloat(text, 64)
	return NumberScore(x), err == nil && math.Abs(x) <= ScoreNumberMax // which NaN is not
}

// NumberScore returns the value of a number, which must not be beyond ScoreNumberMax.
func NumberScore(x float64) ScoreValue {
	// No -0, which equals 0 and looks different.
	return ScoreValue{Kind: ScoreNumber, Number: x + 0}
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

// Bounds of what a project says about its scores.
const (
	ScoreDefinitionsMax = 200
	ReviewQueuesMax     = 100
	ScoreCategoriesMax  = 50 // of one definition
	QueueScoresMax      = 50 // of one queue
)

// ScoreDefinition is what a project expects of the scores of one name.
type ScoreDefinition struct {
	// The scores' name, which is in the path of a definition.
	Name string `json:"name,omitempty" read:"name" jsonschema:"maxLength=512"`
	// The kind of the values. A number may also be sent as score.
	Kind string `json:"kind" jsonschema:"enum=number,enum=boolean,enum=category"`
	// The least number that fits.
	Min *float64 `json:"min,omitempty" jsonschema:"minimum=-1000000000,maximum=1000000000"`
	// The greatest number that fits.
	Max *float64 `json:"max,omitempty" jsonschema:"minimum=-1000000000,maximum=1000000000"`
	// The categories that fit; all do if there are none.
	Categories []string `json:"categories,omitempty" jsonschema:"maxItems=50"`
	// The direction that comparisons call better; without it, neither.
	Better string `json:"better,omitempty" jsonschema:"enum=higher,enum=lower"`
	// The thing that is judged, for reviewers.
	Description string `json:"description,omitempty" jsonschema:"maxLength=1000"`
}

// DefinedKinds are the kinds of scores that can be defined, as ScoreKind.String returns them.
var DefinedKinds = []string{"number", "boolean", "category"}

// Directions are what a definition may call better.
var Directions = []string{"higher", "lower"}

// String returns one of DefinedKinds, or none. An integer is a number.
func (k ScoreKind) String() string {
	return [...]string{"number", "number", "boolean", "category", "none"}[k]
}

// Fits reports whether a value is one that the definition expects. Without a definition, every value
// fits. So does one that takes a score back.
func (d *ScoreDefinition) Fits(v ScoreValue) bool {
	switch {
	case d == nil || v.Kind == ScoreNone:
		return true
	case v.Kind.String() != d.Kind:
		return false
	case v.Kind == ScoreCategory:
		return len(d.Categories) == 0 || slices.Contains(d.Categories, v.Text)
	}

	return (d.Min == nil || v.Number >= *d.Min) && (d.Max == nil || v.Number <= *d.Max)
}

// Expected returns in words which values fit.
func (d *ScoreDefinition) Expected() string {
	bound := func(word string, x *float64) string {
		if x == nil {
			return ""
		}
		return word + NumberScore(*x).String()
	}

	switch {
	case d.Kind == "boolean":
		return "true or false"
	case len(d.Categories) > 0:
		return "one of: " + strings.Join(d.Categories, ", ")
	case d.Kind == "category":
		return "a text"
	case d.Min == nil || d.Max == nil:
		return "a number" + bound(" of at least ", d.Min) + bound(" of at most ", d.Max)
	}

	return "a number" + bound(" from ", d.Min) + bound(" to ", d.Max)
}

func (d *ScoreDefinition) check(f *fields) {
	f.checkName(d.Name)
	if d.Better != "" && d.Kind == "category" {
		f.fault("better", "is for numbers and booleans only")
	}

	if d.Kind != "number" && (d.Min != nil || d.Max != nil) {
		f.fault("min", "and max are for numbers only")
	}
	if d.Min != nil && d.Max != nil && *d.Min > *d.Max {
		f.fault("min", "must not be greater than max")
	}

	if d.Kind != "category" && len(d.Categories) > 0 || len(d.Categories) > ScoreCategoriesMax {
		f.fault("categories", "are for the kind category only, and at most %d", ScoreCategoriesMax)
		return
	}
	for i, text := range d.Categories {
		v, ok := CategoryScore(text)
		if !ok || v.Text != text || slices.Contains(d.Categories[:i], text) {
			f.fault("categories", "must be different texts of 1 to %d characters", ScoreCategoryRunesMax)
		}
	}
}

func (f *fields) checkName(name string) {
	if strings.TrimSpace(name) != name || name == "" {
		f.fault("name", "must not be empty, nor begin or end with a space")
	}
	f.bound("name", name, NameRunesMax)
}

// named returns the name in the path or, without one, that of the body.
func (f *fields) named(m *member) string {
	own := f.text(m.name, false, int(m.most))
	if f.name != "" && own != "" && own != f.name {
		f.fault(m.name, "differs from the name in the path")
	}
	return cmp.Or(f.name, own)
}

// ScoreDefinitions are those of a project, sorted by name.
type ScoreDefinitions []ScoreDefinition

// Of returns the definition of a name; nil if there is none.
func (all ScoreDefinitions) Of(name string) *ScoreDefinition {
	i, found := slices.BinarySearchFunc(all, name, func(d ScoreDefinition, name string) int {
		return strings.Compare(d.Name, name)
	})
	if !found {
		return nil
	}

	return &all[i]
}

// OfSum returns the definition of a sum's name, or else what its values are: of its kind.
func (all ScoreDefinitions) OfSum(s ScoreSum) ScoreDefinition {
	if d := all.Of(s.Name); d != nil {
		return *d
	}
	return ScoreDefinition{Name: s.Name, Kind: s.Kind}
}

// Check returns CodeInvalid for a score that does not fit its definition.
func (all ScoreDefinitions) Check(s Score) error {
	d := all.Of(s.Name)
	if d.Fits(s.ScoreValue) {
		return nil
	}
	field := "value"
	if s.Kind == ScoreInteger {
		field = "score"
	}

	return Invalid(FieldError{
		Field:  field,
		Reason: "does not fit the definition of " + strconv.Quote(s.Name) + ", which expects " + d.Expected(),
	})
}

// ScoreAgreement is how far the authors of one score say the same of the same targets.
type ScoreAgreement struct {
	Pairs    []AuthorPair `json:"pairs"` // sorted; empty if no request has two authors
	Progress              // incomplete if time ran out or there are more values than ComparedMax
}

// AuthorPair are two authors of a score and the targets that both scored.
type AuthorPair struct {
	A     string   `json:"a"`     // an author; "" for scores without one
	B     string   `json:"b"`     // another author
	Both  int64    `json:"both"`  // requests that both scored
	Equal float64  `json:"equal"` // the share of them of which both say the same
	Kappa *float64 `json:"kappa"` // Cohen's kappa; null for numbers, and where both always say one and the same
}

// ScoreDefinitionList answers GET /api/public/v2/score-definitions.
type ScoreDefinitionList struct {
	Success bool              `json:"success"`
	Items   []ScoreDefinition `json:"items"` // all, sorted by name
}

// ReviewQueue is a filter whose requests people score.
type ReviewQueue struct {
	Name string `json:"name" read:"name" jsonschema:"maxLength=512"`
	// A filter line.
	Filter string `json:"filter,omitempty" jsonschema:"maxLength=1000"`
	// The names of the scores to give.
	Scores []string `json:"scores"`
	// How many people score each request; 0 means one.
	Reviewers int `json:"reviewers,omitempty" jsonschema:"minimum=1,maximum=100"`
}

// check does not read the filter line.
func (q *ReviewQueue) check(f *fields) {
	f.checkName(q.Name)
	if len(q.Scores) == 0 || len(q.Scores) > QueueScoresMax {
		f.fault("scores", "must be the names of 1 to %d scores", QueueScoresMax)
	}
}
