package review

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"promptspool/api/wire"
)

// score is a score to give.
type score struct {
	wire.ScoreDefinition
	Choices []choice // nil if a value is typed
	Given   string   // the reviewer's value; "" if there is none yet
	First   bool     // on the screen

	whole bool // without a definition: an integer from 0 to 100
}

// choice is a value that is given by one key or one click.
type choice struct{ Value, Text, Key string }

// Hints reports whether a value does not say its key.
func (s score) Hints() bool {
	return slices.ContainsFunc(s.Choices, func(c choice) bool { return c.Key != c.Text })
}

// scoresOf returns the scores of some names. Without names they are those that are defined, or else one
// called default.
func scoresOf(names []string, defined wire.ScoreDefinitions) (all []score) {
	if len(names) == 0 {
		for _, d := range defined {
			names = append(names, d.Name)
		}
	}
	if len(names) == 0 {
		names = []string{wire.DefaultScoreName}
	}

	for i, name := range names {
		s := score{First: i == 0, whole: true, ScoreDefinition: wire.ScoreDefinition{
			Name: name, Kind: "number", Min: new(0.0), Max: new(100.0),
		}}
		if d := defined.Of(name); d != nil {
			s.ScoreDefinition, s.whole = *d, false
		}
		s.Choices = choicesOf(s.ScoreDefinition)
		all = append(all, s)
	}

	return all
}

// choicesOf returns what a score is chosen from; nil if a value is typed.
func choicesOf(d wire.ScoreDefinition) []choice {
	switch {
	case d.Kind == "boolean":
		return []choice{{"true", "yes", "y"}, {"false", "no", "n"}}
	case d.Kind == "category":
		return categories(d.Categories)
	case d.Min != nil && d.Max != nil && *d.Min < *d.Max:
		return scale(*d.Min, *d.Max)
	}

	return nil
}

// taken are the keys that do something else on the page.
const taken = "xzre"

// categories gives each text its first letter that no other one has, or else a digit.
func categories(texts []string) (all []choice) {
	used := taken
	for _, text := range texts {
		c := choice{Value: text, Text: text}
		for _, r := range strings.ToLower(text) + "123456789" {
			if (unicode.IsLetter(r) || unicode.IsDigit(r)) && !strings.ContainsRune(used, r) {
				c.Key = string(r)
				used += c.Key
				break
			}
		}
		all = append(all, c)
	}

	return all
}

// scale returns each integer of a range of at most ten, or eleven values of another one.
func scale(low, high float64) (all []choice) {
	steps := 10
	if span := high - low; span <= 10 && low == math.Trunc(low) && span == math.Trunc(span) {
		steps = int(span)
	}
	for i := range steps + 1 {
		value := low + (high-low)*float64(i)/float64(steps)
		text := strconv.FormatFloat(math.Round(value*1e6)/1e6, 'f', -1, 64)
		key := i
		if steps < 10 {
			key++
		}
		if steps < 10 && low >= 0 && high <= 9 {
			key = int(value)
		}
		all = append(all, choice{text, text, "0123456789t"[key : key+1]})
	}

	return all
}
