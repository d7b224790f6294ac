// Package closest says which values and keys exist that are close to those of a filter that
// finds nothing.
package closest

import (
	"context"
	"slices"
	"strings"
	"time"

	"promptspool/api/filterline"
	"promptspool/api/wire"
	"promptspool/api/words"
)

// Bounds of a look for close values.
const (
	conditionsMax = 5
	valuesMax     = wire.PageItemsMax // of a field, among which the closest are sought
)

// Records are what is searched.
type Records interface {
	Search(ctx context.Context, id wire.Identity, s wire.Search) (wire.SearchPage, error)
	Suggest(ctx context.Context, id wire.Identity, s wire.SuggestQuery) (wire.Suggestions, error)
}

// fields are those of a line whose values are listed without looking into prompts and responses.
var fields = strings.Fields(`error finish function group label metadata metadata_key model template
	provider score_name sidecar status tag tool`)

// Value is one that exists, in place of one that does not.
type Value struct {
	Instead filterline.Term // which demands a value that does not exist
	Term    filterline.Term // which demands the one that exists
	Line    filterline.Line // with the term
	Found   wire.SearchPage // what the term finds

	// Key is set if no record has the key of the condition: the key that was meant, of metadata or
	// of a line. Then nothing is counted.
	Key string
}

// Text returns the value that exists.
func (v Value) Text() string {
	text, _ := v.Term.Demanded()

	return text
}

// Find returns the closest existing values, for each condition of a line that demands a value
// which does not exist. It returns what it has found when its time is over.
func Find(
	ctx context.Context, records Records, id wire.Identity, line filterline.Line, patience time.Duration,
) (all []Value) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	looked := 0
	for i, t := range line.Terms {
		text, demands := t.Demanded()
		if !demands || text == "" || !slices.Contains(fields, t.Field.Name) || looked == conditionsMax {
			continue
		}
		looked++
		// Only a value that no record has is mistyped. The others exclude each other.
		if page, err := count(ctx, records, id, t); err != nil || page.Total > 0 {
			continue
		}
		if key, ok := keyMeant(ctx, records, id, t, patience/3); ok {
			all = append(all, Value{Instead: t, Term: t.Of(key), Line: line.Replaced(i, t.Of(key)), Key: key})
			continue
		}

		// A third of the time: counting what was found needs the rest.
		found, err := records.Suggest(ctx, id, wire.SuggestQuery{
			Field:  t.Field.JSON,
			Key:    t.Part,
			Limit:  valuesMax,
			Budget: patience / 3,
		})
		if err != nil {
			continue
		}
		for _, near := range words.Closest(text, found.Values) {
			other := t.Demanding(near)
			if page, err := count(ctx, records, id, other); err == nil && page.Total > 0 {
				all = append(all, Value{Instead: t, Term: other, Line: line.Replaced(i, other), Found: page})
			}
		}
	}

	return all
}

// keyMeant returns the closest key to that of a condition on metadata, if no record has that one.
// A line takes every key that it does not know for one of the metadata, slips included.
func keyMeant(
	ctx context.Context, records Records, id wire.Identity, t filterline.Term, budget time.Duration,
) (string, bool) {
	if t.Field != filterline.OfMetadata() {
		return "", false
	}
	keys, err := records.Suggest(ctx, id, wire.SuggestQuery{Field: "metadata_keys", Limit: valuesMax, Budget: budget})
	if err != nil || slices.Contains(keys.Values, t.Part) {
		return "", false
	}

	var names []string
	for i := range filterline.Fields {
		if f := &filterline.Fields[i]; f.Listed() && !f.NeedsPart {
			names = append(names, f.Name)
		}
	}
	near := words.Closest(t.Part, append(names, keys.Values...))
	if len(near) == 0 {
		return "", false
	}

	return near[0], true
}

// count counts the records that a term finds, which demands a text.
func count(ctx context.Context, records Records, id wire.Identity, t filterline.Term) (wire.SearchPage, error) {
	s, err := t.Compile(filterline.Clock{})
	if err != nil {
		return wire.SearchPage{}, err
	}

	return records.Search(ctx, id, wire.Search{FilterGroup: s, PerPage: 1})
}
