package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"promptspool/api/client"
	"promptspool/api/wire"
)

// you are the caller: a key of scope full.
var you = wire.Identity{Key: "a key of scope full"}

// dialExample returns a client of a server that gives one answer.
func dialExample(status int, answer string) (c *client.Client, closeBoth func()) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Promptspool-Version", "1.0") // by it the client knows that a server of ours answers
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	c, err := client.New(client.Config{URL: server.URL, Version: "1.0"})
	if err != nil {
		panic(err)
	}
	return c, func() {
		c.Close()
		server.Close()
	}
}

// Find the calls that carry a tag.
func ExampleClient_Search() {
	c, closeBoth := dialExample(200, `{"success": true, "total": 1, "complete": true,
		"items": [{"request_id": "01a2033d-6025-7d2f-aa56-4e3827c3321b", "engine": "gpt-4o-mini"}]}`)
	defer closeBoth()

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

// Fetch the version of a template that a label points to, with its variables filled in.
func ExampleClient_Fetch() {
	c, closeBoth := dialExample(200, `{"success": true, "prompt_name": "greet", "version": 3,
		"llm_kwargs": {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Say hello to Ann."}]}}`)
	defer closeBoth()

	t, err := c.Fetch(context.Background(), you, "greet", wire.TemplateFetch{
		Selector:  wire.Selector{Label: "prod"},
		Variables: map[string]json.RawMessage{"name": json.RawMessage(`"Ann"`)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(t.Version, string(t.LLMKwargs))
	// Output: 3 {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Say hello to Ann."}]}
}

// Every error is a *wire.Error, with a code to decide by.
func ExampleClient_Request() {
	c, closeBoth := dialExample(404, `{"success": false, "error": "not_found", "message": "There is no such request.",
		"fields": []}`)
	defer closeBoth()

	_, err := c.Request(context.Background(), you, "01a2033d-6025-7d2f-aa56-4e3827c3321b")
	if e, ok := errors.AsType[*wire.Error](err); ok {
		fmt.Println(e.Code == wire.CodeNotFound, e.Message)
	}
	// Output: true There is no such request.
}
