// Package closest says which values and keys exist that are close to those of a filter that
// finds nothing.
package closest

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"

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

// fields are those whose values are listed without looking into prompts and responses.
var fields = strings.Fields(`engine error_type finish_reason function_name group_id label metadata
	metadata_keys model prompt_id prompt_name provider provider_type score_name sidecar status tags tool_names`)

// Value is one that exists, in place of one that does not.
type Value struct {
	Instead wire.Filter // the condition whose value does not exist
	Text    string      // the value that exists
	Found   wire.SearchPage

	// Key is set instead of Text if no record has the key of the condition: the key that was
	// meant, of metadata or of a filter line.
	Key string
}

// Find returns the closest existing values, for each condition of a filter that demands a value
// which does not exist. It returns what it has found when its time is over.
func Find(
	ctx context.Context, records Records, id wire.Identity, filter *wire.Filter, patience time.Duration,
) (all []Value) {
	if filter == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	for _, c := range equalities(*filter, nil) {
		// Only a value that no record has is mistyped. The others exclude each other.
		if page, err := count(ctx, records, id, c); err != nil || page.Total > 0 {
			continue
		}
		if key, ok := keyMeant(ctx, records, id, c, patience/3); ok {
			all = append(all, Value{Instead: c, Key: key})
			continue
		}

		// A third of the time: counting what was found needs the rest.
		found, err := records.Suggest(ctx, id, wire.SuggestQuery{
			Field:  c.Field,
			Key:    c.NestedKey,
			Limit:  valuesMax,
			Budget: patience / 3,
		})
		if err != nil {
			continue
		}
		for _, text := range Among(valueOf(c), found.Values) {
			instead := c
			instead.Value, _ = json.Marshal(text)
			if page, err := count(ctx, records, id, instead); err == nil && page.Total > 0 {
				all = append(all, Value{Instead: c, Text: text, Found: page})
			}
		}
	}

	return all
}

// keyMeant returns the closest key to that of a condition on metadata, if no record has that one.
// A line takes every key that it does not know for one of the metadata, slips included.
func keyMeant(
	ctx context.Context, records Records, id wire.Identity, c wire.Filter, budget time.Duration,
) (string, bool) {
	if c.Field != "metadata" {
		return "", false
	}
	keys, err := records.Suggest(ctx, id, wire.SuggestQuery{Field: "metadata_keys", Limit: valuesMax, Budget: budget})
	if err != nil || slices.Contains(keys.Values, c.NestedKey) {
		return "", false
	}

	var names []string
	for i := range filterline.Fields {
		if f := &filterline.Fields[i]; f.Listed() && !f.NeedsPart {
			names = append(names, f.Name)
		}
	}
	near := Among(c.NestedKey, append(names, keys.Values...))
	if len(near) == 0 {
		return "", false
	}

	return near[0], true
}

// equalities are the conditions of a filter that demand one value.
func equalities(f wire.Filter, all []wire.Filter) []wire.Filter {
	for _, part := range f.Filters {
		all = equalities(part, all)
	}
	demands := f.Operator == "is" || f.Operator == "eq"
	if demands && valueOf(f) != "" && slices.Contains(fields, f.Field) && len(all) < conditionsMax {
		all = append(all, f)
	}

	return all
}

func valueOf(f wire.Filter) (text string) {
	_ = json.Unmarshal(f.Value, &text) // another kind of value has none that are close

	return text
}

func count(ctx context.Context, records Records, id wire.Identity, f wire.Filter) (wire.SearchPage, error) {
	return records.Search(ctx, id, wire.Search{FilterGroup: &f, PerPage: 1})
}

// Among returns the values closest to one, the closest first. These are the same in another case, then
// what begins alike, then what differs by a few letters. Blanks and punctuation do not count.
func Among(value string, values []string) []string {
	value = plain(value)
	// A longer word may have more slips before it is another word.
	most := 1 + len([]rune(value))/4
	rank := make(map[string]int)
	for _, v := range values {
		lower := plain(v)
		if lower == value {
			rank[v] = 0
		} else if strings.HasPrefix(lower, value) || len(lower) > 2 && strings.HasPrefix(value, lower) {
			rank[v] = 1
		} else if d := distance(value, lower, most); d <= most {
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

// distance is how many letters must be added, removed or replaced to make b of a, as far as it is at most most.
func distance(a, b string, most int) int {
	from, to := []rune(a), []rune(b)
	if max(len(from), len(to))-min(len(from), len(to)) > most {
		return most + 1
	}

	// Levenshtein's, with one row: of the table only the line above is ever needed.
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range from {
		diagonal := row[0]
		row[0] = i + 1
		for j, y := range to {
			replaced := diagonal
			if x != y {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}

	return row[len(to)]
}
