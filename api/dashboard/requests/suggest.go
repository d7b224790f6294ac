package requests

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/number"
	"promptspool/api/filterline"
	"promptspool/api/wire"
)

const (
	suggestionsMax = 30
	countedMax     = 20                     // suggestions whose requests are counted
	suggestTimeMax = 100 * time.Millisecond // later ones would only disturb the typing
	countTimeMax   = 300 * time.Millisecond // of all counts; what is not counted by then has none
)

// suggestions complete a line that is being typed.
type suggestions struct {
	Kept   string  `json:"kept"` // what stays in front of a suggestion
	Offers []offer `json:"offers"`

	// Half is set if the written text is not a value, and these are all values that it
	// may become. Enter then takes the first.
	Half bool `json:"half"`
}

// offer is one suggestion.
type offer struct {
	Text string `json:"text"`
	Note string `json:"note"` // what it is, or how many requests have it

	found int // how many requests have it; -1 if that is not known
}

// suggest answers with what completes a line, of which the address has the part in front of the
// cursor. The page's script offers it.
func (p *pages) suggest(c *frame.Exchange) error {
	line := c.URL.Query().Get("line")
	found := suggestions{Kept: line, Offers: []offer{}}
	if utf8.RuneCountInString(line) <= filterline.RunesMax {
		found = p.completed(c.Context(), c.Identity(), filterline.TypingAt(line), c.URL.Query().Has("rollups"))
		// A star or a quote is meant as written.
		found.Half = found.Half && !strings.ContainsAny(line[len(found.Kept):], `*"`)
	}

	c.W.Header().Set("Content-Type", "application/json")

	return json.NewEncoder(c.W).Encode(found)
}

// completed returns what completes a line of calls, or of sessions, traces and users.
func (p *pages) completed(
	ctx context.Context, id wire.Identity, typing filterline.Typing, ofRollups bool,
) suggestions {
	found := suggestions{Kept: typing.Kept, Offers: []offer{}}
	switch {
	case typing.IsText():
	case typing.Value:
		found.Offers, found.Half = p.offerValues(ctx, id, typing)
	case typing.Field != nil:
		found.Offers = p.offerParts(ctx, id, typing.Field, typing.Prefix)
	default:
		for _, f := range typing.Keys(ofRollups) {
			found.Offers = append(found.Offers, offer{Text: f.Completed(), Note: f.Help})
		}
		metadata := filterline.OfMetadata()
		found.Offers = append(found.Offers, p.offerParts(ctx, id, metadata, typing.Prefix)...)
	}

	return found
}

// offerParts suggests what follows a field's dot, such as the keys of metadata.
func (p *pages) offerParts(ctx context.Context, id wire.Identity, f *filterline.Field, prefix string) []offer {
	offers := []offer{}
	for _, part := range p.existing(ctx, id, wire.SuggestQuery{Field: f.PartField(), Prefix: prefix}) {
		offers = append(offers, offer{Text: f.CompletedPart(part), Note: f.Name})
	}

	return offers
}

// offerValues suggests values, those of the most requests first. half is what suggestions have of it.
func (p *pages) offerValues(
	ctx context.Context, id wire.Identity, t filterline.Typing,
) (offers []offer, half bool) {
	if name, selector, ok := t.Selector(); ok {
		return p.counted(ctx, id, t, p.versions(ctx, id, name, selector)), false
	}

	texts := t.Words()
	known := len(texts) > 0 || t.Field.Values != nil
	if of := t.Field.ValueField(); !known && of != "" {
		texts = p.existing(ctx, id,
			wire.SuggestQuery{Field: of, Key: t.Part, Prefix: t.Prefix, Inside: true})
	}

	var values []filterline.Value
	half = t.Prefix != "" && len(texts) > 0 && len(texts) < suggestionsMax
	for _, text := range texts {
		// As if it had been quoted: an @ or a star in it is part of the value.
		values = append(values, filterline.Value{Text: text, Quoted: true})
		half = half && !strings.EqualFold(text, t.Prefix)
	}
	offers = p.counted(ctx, id, t, values)
	slices.SortStableFunc(offers, func(a, b offer) int { return cmp.Compare(b.found, a.found) })

	return offers, half
}

// counted offers values, with how many requests have each of them, as far as time allows.
func (p *pages) counted(
	ctx context.Context, id wire.Identity, t filterline.Typing, values []filterline.Value,
) []offer {
	ctx, cancel := context.WithTimeout(ctx, countTimeMax)
	defer cancel()
	offers := []offer{}
	for i, value := range values {
		text, line := t.Offered(value)
		o := offer{Text: text, found: -1}
		if i < countedMax && t.Field.Kind != filterline.Time {
			o.found, o.Note = p.countOf(ctx, id, line)
		}
		offers = append(offers, o)
	}

	return offers
}

// versions returns a template's versions, newest first, and its labels.
func (p *pages) versions(ctx context.Context, id wire.Identity, name, prefix string) (all []filterline.Value) {
	head, err := p.templates.Head(ctx, id, name)
	if err != nil {
		return nil
	}
	var selectors []string
	for n := head.Latest(); n > 0; n-- {
		selectors = append(selectors, strconv.Itoa(n))
	}
	for _, l := range head.Labels {
		selectors = append(selectors, l.Name)
	}

	for _, selector := range selectors {
		if len(all) < suggestionsMax && strings.HasPrefix(selector, prefix) {
			all = append(all, filterline.Value{Text: name + "@" + selector})
		}
	}

	return all
}

// existing lists values that exist. Fields without such values have none, and so has a server that
// cannot tell in time.
func (p *pages) existing(ctx context.Context, id wire.Identity, q wire.SuggestQuery) []string {
	q.Limit, q.Budget = suggestionsMax, suggestTimeMax
	found, err := p.records.Suggest(ctx, id, q)
	if err != nil {
		return nil
	}

	return found.Values
}

// countOf returns how many requests a line finds, also in words; -1 and "" if that takes too long.
func (p *pages) countOf(ctx context.Context, id wire.Identity, line filterline.Line) (n int, words string) {
	s, err := line.Compile(filterline.Clock{Now: time.Now()})
	if err != nil {
		return -1, ""
	}
	page, err := p.records.Search(ctx, id, wire.Search{FilterGroup: s, PerPage: 1})
	if err != nil {
		return -1, ""
	}
	words = number.Grouped(int64(page.Total))
	if page.TotalIsLowerBound {
		words += "+"
	}

	return page.Total, words
}
