package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"promptspool/api/client"
	"promptspool/api/wire"
)

// Find the calls that carry a tag.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Promptspool-Version", "1.0") // by it the client knows that a server of ours answers
		_, _ = io.WriteString(w, `{"success": true, "items": [{"request_id": "01a2033d-6025-7d2f-aa56-4e3827c3321b",
			"engine": "gpt-4o-mini"}], "total": 1, "complete": true}`)
	}))
	defer server.Close()

	c, err := client.New(client.Config{URL: server.URL, Version: "1.0"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	you := wire.Identity{Key: "a key of scope full"}
	page, err := c.Search(context.Background(), you, wire.Search{
		FilterGroup: &wire.Filter{Filters: []wire.Filter{
			{Field: "tags", Operator: "is", Value: json.RawMessage(`"checkout"`)},
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range page.Items {
		fmt.Println(row.RequestID, row.Engine)
	}
	// Output: 01a2033d-6025-7d2f-aa56-4e3827c3321b gpt-4o-mini
}
