package requests

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
	listedMax     = wire.PageItemsMax // values of a field, among which the closest are sought
)

// searched finds requests, and values that they have.
type searched interface {
	Search(ctx context.Context, id wire.Identity, s wire.Search) (wire.SearchPage, error)
	Suggest(ctx context.Context, id wire.Identity, s wire.SuggestQuery) (wire.Suggestions, error)
}

// listedFields are those of a line whose values are listed without looking into prompts and responses.
var listedFields = strings.Fields(`error finish function group label metadata metadata_key model template
	provider score_name sidecar status tag tool`)

// closeValue is a value that exists, in place of one that does not.
type closeValue struct {
	Instead filterline.Term // which demands a value that does not exist
	Text    string          // the value that exists
	Found   wire.SearchPage // what has it

	// Key is set if no record has the key of the condition: the key that was meant, of metadata or
	// of a line. Then nothing is counted.
	Key string
}

// closest returns the closest existing values, for each condition of a line that demands a value
// which does not exist. It returns what it has found when its time is over.
func closest(
	ctx context.Context, records searched, id wire.Identity, line filterline.Line, patience time.Duration,
) (all []closeValue) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	looked := 0
	for _, t := range line.Terms {
		text, demands := t.Demanded()
		if !demands || text == "" || !slices.Contains(listedFields, t.Field.Name) || looked == conditionsMax {
			continue
		}
		looked++
		// Only a value that no record has is mistyped. The others exclude each other.
		if page, err := count(ctx, records, id, t); err != nil || page.Total > 0 {
			continue
		}
		if key, ok := keyMeant(ctx, records, id, t, patience/3); ok {
			all = append(all, closeValue{Instead: t, Key: key})
			continue
		}

		// A third of the time: counting what was found needs the rest.
		found, err := records.Suggest(ctx, id, wire.SuggestQuery{
			Field:  t.Field.JSON,
			Key:    t.Part,
			Limit:  listedMax,
			Budget: patience / 3,
		})
		if err != nil {
			continue
		}
		for _, near := range words.Closest(text, found.Values) {
			if page, err := count(ctx, records, id, t.Demanding(near)); err == nil && page.Total > 0 {
				all = append(all, closeValue{Instead: t, Text: near, Found: page})
			}
		}
	}

	return all
}

// keyMeant returns the closest key to that of a condition on metadata, if no record has that one.
// A line takes every key that it does not know for one of the metadata, slips included.
func keyMeant(
	ctx context.Context, records searched, id wire.Identity, t filterline.Term, budget time.Duration,
) (string, bool) {
	if t.Field != filterline.OfMetadata() {
		return "", false
	}
	keys, err := records.Suggest(ctx, id, wire.SuggestQuery{Field: "metadata_keys", Limit: listedMax, Budget: budget})
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
func count(ctx context.Context, records searched, id wire.Identity, t filterline.Term) (wire.SearchPage, error) {
	s, err := t.Compile(filterline.Clock{})
	if err != nil {
		return wire.SearchPage{}, err
	}

	return records.Search(ctx, id, wire.Search{FilterGroup: s, PerPage: 1})
}
