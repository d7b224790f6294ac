package wire

import (
	"encoding/json"
	"testing"
)

func TestDecodeSearchReadsEveryField(t *testing.T) {
	got, err := decodeSearch([]byte(`{"page":2,"per_page":50,"cursor":"c","filter_group":{"logic":"OR","filters":[
		{"field":"tags","operator":"contains","value":["prod"]},` +
		`{"filters":[{"field":"metadata","nested_key":"user","operator":"is","value":1.50}]}]}}`))
	wantFaults(t, err)
	same(t, "search", got, Search{
		Page:    2,
		PerPage: 50,
		Cursor:  "c",
		FilterGroup: &Filter{Logic: "OR", Filters: []Filter{
			{Field: "tags", Operator: "contains", Value: json.RawMessage(`["prod"]`)},
			{Filters: []Filter{
				{Field: "metadata", NestedKey: "user", Operator: "is", Value: json.RawMessage("1.50")},
			}},
		}},
	})
}

func TestAFilterOfTheWrongShapeIsRefused(t *testing.T) {
	for _, filter := range []string{
		`{"filters":"x"}`, `{"filters":[1]}`, `{"logic":1}`, `{"filters":[{"field":["tags"]}]}`,
	} {
		_, err := decodeSearch([]byte(`{"filter_group":` + filter + `}`))
		wantFaults(t, err,
			`filter_group must be {"logic": "AND" or "OR", "filters": [...]}, `+
				`and each filter {"field", "operator", "value", "nested_key"}`)
	}
}

func TestPagingFollowsFromPageItemsAndTotal(t *testing.T) {
	n := func(n int) *int { return &n }
	for _, want := range []Paging{
		{Page: 1, PerPage: 10, Total: 0, Pages: 0},
		{Page: 1, PerPage: 10, Total: 1, Pages: 1},
		{Page: 1, PerPage: 10, Total: 10, Pages: 1},
		{Page: 1, PerPage: 10, Total: 11, Pages: 2, HasNext: true, NextNum: n(2)},
		{Page: 2, PerPage: 10, Total: 21, Pages: 3, HasNext: true, NextNum: n(3), HasPrev: true, PrevNum: n(1)},
		{Page: 3, PerPage: 10, Total: 21, Pages: 3, HasPrev: true, PrevNum: n(2)},
		{Page: 9, PerPage: 10, Total: 21, Pages: 3, HasPrev: true, PrevNum: n(8)}, // beyond the end
		{Page: 2, PerPage: 1, Total: 2, Pages: 2, HasPrev: true, PrevNum: n(1)},
	} {
		same(t, "paging", NewPaging(want.Page, want.PerPage, want.Total), want)
	}
}

// decodeSearch decodes a body that may be left out, as the API does.
func decodeSearch(body []byte) (Search, error) { return decodeOptional(body, Decode[Search]) }

// decodeFetch decodes a body that may be left out, as the API does.
func decodeFetch(body []byte) (TemplateFetch, error) {
	return decodeOptional(body, Decode[TemplateFetch])
}

// decodeOptional decodes a body, or an empty object if there is none.
func decodeOptional[T any](body []byte, decode func(Object) (T, error)) (T, error) {
	object, err := Object(nil).ParseOptional(body)
	if err != nil {
		return *new(T), err
	}
	return decode(object)
}
