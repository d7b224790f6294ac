// Package closest says which values and keys exist that are close to those of a filter that
// finds nothing.
package closest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/xrash/smetrics"

	"promptspool/api/filterline"
	"promptspool/api/wire"
)

// Bounds of a look for close values.
const (
	conditionsMax = 5
	valuesMax     = wire.PageItemsMax // of a field, among which the closest are sought
	closestMax    = 3                 // of a condition
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
		for _, near := range Among(text, found.Values) {
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
	near := Among(t.Part, append(names, keys.Values...))
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

// Among returns the values closest to one, the closest first. These are the same in another case, then
// what begins alike, then what differs by a few letters. Blanks and punctuation do not count.
func Among(value string, values []string) []string {
	value = plain(value)
	// A longer word may have more slips before it is another word.
	most := 1 + len(value)/4
	rank := make(map[string]int)
	for _, v := range values {
		lower := plain(v)
		if lower == value {
			rank[v] = 0
		} else if strings.HasPrefix(lower, value) || len(lower) > 2 && strings.HasPrefix(value, lower) {
			rank[v] = 1
		} else if d := smetrics.WagnerFischer(value, lower, 1, 1, 1); d <= most {
			rank[v] = 1 + d
		}
	}

	var near []string
	for _, v := range values {
		if _, ok := rank[v]; ok {
			near = append(near, v)
		}
	}
	slices.SortStableFunc(near, func(a, b string) int { return cmp.Compare(rank[a], rank[b]) })

	return near[:min(len(near), closestMax)]
}

// plain returns the letters and digits of a text in lower case or, if it has none, the text.
func plain(text string) string {
	letters := strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			return unicode.ToLower(c)
		}
		return -1
	}, text)

	return cmp.Or(letters, strings.ToLower(text))
}
