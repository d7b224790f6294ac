package dashboard

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
	"unicode/utf8"

	"promptspool/api/filterline"
	"promptspool/api/wire"
)

const (
	suggestionsMax = 30
	countedMax     = 10                     // suggestions whose requests are counted
	suggestTimeMax = 100 * time.Millisecond // later ones would only disturb the typing
	countTimeMax   = 300 * time.Millisecond // of all counts; what is not counted by then has none
)

// suggestions complete a line that is being typed.
type suggestions struct {
	Kept   string  `json:"kept"` // what stays in front of a suggestion
	Offers []offer `json:"offers"`
}

// offer is one suggestion.
type offer struct {
	Text string `json:"text"`
	Note string `json:"note"` // what it is, or how many requests have it

}

// suggest answers with what completes a line, of which the address has the part in front of the
// cursor. The page's script offers it.
func (d *Dashboard) suggest(c *call) error {
	line := c.URL.Query().Get("line")
	found := suggestions{Kept: line, Offers: []offer{}}
	if utf8.RuneCountInString(line) <= filterline.RunesMax {
		found = d.completed(c.Context(), c.identity(), filterline.TypingAt(line))
	}

	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(http.StatusOK)

	return json.NewEncoder(c.w).Encode(found)
}

// completed returns what completes a line.
func (d *Dashboard) completed(ctx context.Context, id wire.Identity, typing filterline.Typing) suggestions {
	found := suggestions{Kept: typing.Kept, Offers: []offer{}}
	switch {
	case typing.IsText():
	case typing.Value:
		found.Offers = d.offerValues(ctx, id, typing)
	case typing.Field != nil:
		found.Offers = d.offerParts(ctx, id, typing.Field, typing.Prefix)
	default:
		for _, f := range typing.Keys() {
			found.Offers = append(found.Offers, offer{Text: f.Completed(), Note: f.Help})
		}
		metadata := filterline.OfMetadata()
		found.Offers = append(found.Offers, d.offerParts(ctx, id, metadata, typing.Prefix)...)
	}

	return found
}

// offerParts suggests what follows a field's dot, such as the keys of metadata.
func (d *Dashboard) offerParts(ctx context.Context, id wire.Identity, f *filterline.Field, prefix string) []offer {
	offers := []offer{}
	for _, part := range d.existing(ctx, id, wire.SuggestQuery{Field: f.PartField(), Prefix: prefix}) {
		offers = append(offers, offer{Text: f.CompletedPart(part), Note: f.Name})
	}

	return offers
}

// offerValues suggests values, with the numbers of their requests as far as time allows.
func (d *Dashboard) offerValues(ctx context.Context, id wire.Identity, t filterline.Typing) []offer {
	offers := []offer{}
	values := t.Words()
	known := len(values) > 0 || t.Field.Values != nil
	if !known && (t.Field.Kind == filterline.Text || t.Field.Kind == filterline.Template) {
		values = d.existing(ctx, id, wire.SuggestQuery{Field: t.Field.JSON, Key: t.Part, Prefix: t.Prefix})
	}

	ctx, cancel := context.WithTimeout(ctx, countTimeMax)
	defer cancel()
	for i, value := range values {
		o := offer{Text: t.CompletedValue(value)}
		if i < countedMax && t.Field.Kind != filterline.Time {
			o.Note = d.countOf(ctx, id, t.Condition(value))
		}
		offers = append(offers, o)
	}

	return offers
}

// existing lists values that exist. Fields without such values have none, and so has a server that
// cannot tell in time.
func (d *Dashboard) existing(ctx context.Context, id wire.Identity, q wire.SuggestQuery) []string {
	q.Limit, q.Budget = suggestionsMax, suggestTimeMax
	found, err := d.Records.Suggest(ctx, id, q)
	if err != nil {
		return nil
	}

	return found.Values
}

// countOf returns how many requests a line finds; "" if that takes too long.
func (d *Dashboard) countOf(ctx context.Context, id wire.Identity, line filterline.Line) string {
	s, err := line.Compile(filterline.Clock{Now: d.Now()})
	if err != nil {
		return ""
	}
	page, err := d.Records.Search(ctx, id, wire.Search{FilterGroup: s.Filter, PerPage: 1})
	if err != nil {
		return ""
	}
	if page.TotalIsLowerBound {
		return grouped(int64(page.Total)) + "+"
	}

	return grouped(int64(page.Total))
}
