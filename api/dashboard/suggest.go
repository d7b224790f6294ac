package dashboard

import (
	"encoding/json"
	"net/http"
	"time"

	"promptspool/api/wire"
)

const (
	suggestionsMax = 30
	suggestTimeMax = 100 * time.Millisecond // who types waits for no more
)

// suggest answers with values that a field of a filter has, as a JSON array. The script offers them while a value is typed; a field that has
// no such values has none to offer.
func (d *Dashboard) suggest(c *call) error {
	q := c.URL.Query()
	f := readFilter(q)
	found, err := d.Records.Suggest(c.Context(), c.identity(), wire.SuggestQuery{
		Field: q.Get("of"), Key: q.Get("its"), Prefix: q.Get("prefix"), FilterGroup: f.group(d.Now()), Limit: suggestionsMax, Budget: suggestTimeMax,
	})
	if wire.IsCode(err, wire.CodeInvalid) {
		found.Values, err = []string{}, nil
	}
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(http.StatusOK)
	return json.NewEncoder(c.w).Encode(found.Values)
}
