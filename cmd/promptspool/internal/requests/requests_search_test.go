package requests

import (
	"context"
	"testing"
	"time"

	"promptspool/api/filterline"
	"promptspool/api/wire"
)

// oneRecord is what is searched: one record, with a metadata key.
type oneRecord struct{ wire.Recorded }

func (oneRecord) Search(_ context.Context, _ wire.Identity, s wire.Search) (wire.SearchPage, error) {
	page := wire.SearchPage{Success: true}
	f := s.FilterGroup.Filters[0]
	if f.Field == "metadata" && f.NestedKey == "customer" && string(f.Value) == `"Acme"` {
		page.Total = 1
	}
	return page, nil
}

func (oneRecord) Suggest(_ context.Context, _ wire.Identity, q wire.SuggestQuery) (wire.Suggestions, error) {
	values := map[string][]string{"metadata_keys": {"customer"}, "metadata": {"Acme"}}[q.Field]
	return wire.Suggestions{Success: true, Values: values}, nil
}

func TestAKeyThatNoRecordHasIsAnsweredWithTheOneThatWasMeant(t *testing.T) {
	for text, want := range map[string]string{
		"cost:>1 statsu:error":       "statsu:error status\n",
		"custommer:Acme":             "custommer:Acme customer\n",
		"customer:acme -customer:ac": "customer:acme Acme\n",
		"wholly-unknown:1":           "",
	} {
		line, err := filterline.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		for _, value := range closest(t.Context(), oneRecord{}, wire.Identity{}, line, time.Minute) {
			got += value.Instead.String() + " " + value.Key + value.Text + "\n"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
