package dashboard

import (
	"encoding/json"
	"net/http"
	"time"

	"promptspool/api/wire"
)

const (
	suggestionsMax = 30
	suggestTimeMax = 100 * time.Millisecond // later ones would only disturb the typing
)

// suggest answers with values that exist of a filter's field, as a JSON array. The page's
// script offers them while a value is typed. Fields without such values have none.
func (d *Dashboard) suggest(c *call) error {
	q := c.URL.Query()
	found, err := d.Records.Suggest(c.Context(), c.identity(), wire.SuggestQuery{
		Field:       q.Get("of"),
		Key:         q.Get("its"),
		Prefix:      q.Get("prefix"),
		FilterGroup: readFilter(q).group(d.Now()),
		Limit:       suggestionsMax,
		Budget:      suggestTimeMax,
	})

	// A filter may be invalid while it is typed. It has no suggestions.
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
