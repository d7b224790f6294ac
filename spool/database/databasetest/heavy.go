package databasetest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// heavyPages pages through records whose rows weigh half a megabyte each. Pages must end
// early, and their cursors must lead on.
func heavyPages(t *testing.T, open Open) {
	const records = 20
	s, _ := open(t)

	// Characters of four bytes: names are bounded in characters.
	tag := strings.Repeat("\U0001F600", wire.NameRunesMax)
	for i := range records {
		var tags []string
		for n := range 250 {
			tags = append(tags, fmt.Sprintf(`"%d %d %s"`, i, n, tag[:len(tag)-40]))
		}
		body := `{"function_name":"x.y","metadata":{"n":"` + fmt.Sprint(i) + `"},` +
			`"tags":[` + strings.Join(tags, ",") + `]}`
		apply(t, s, account, Event(t, i, wire.KindRequest, ID(1000+i), body))
	}

	id := wire.Identity{Account: account}
	for _, sort := range []string{"", "input_tokens"} {
		found := make(map[string]bool)
		pages, search := 0, wire.Search{PerPage: wire.PageItemsMax, SortBy: sort}
		for ; ; pages++ {
			page, err := overStore(s).Search(context.Background(), id, search)
			if err != nil {
				t.Fatal(err)
			}

			weight := 0
			for i := range page.Items {
				found[page.Items[i].ID] = true
				weight += rowcode.Weight(&page.Items[i])
			}
			if weight > query.PageBytesMax+1<<20 || page.Total != records || page.NextNum != nil {
				t.Fatalf("page %d by %q: %d rows of %d bytes, in all %d, next %v",
					pages, sort, len(page.Items), weight, page.Total, page.NextNum)
			}

			if page.NextCursor == nil {
				break
			}
			search.Cursor = *page.NextCursor
		}

		if len(found) != records || pages == 0 {
			t.Errorf("by %q: %d records behind %d pages", sort, len(found), pages)
		}
	}
}
