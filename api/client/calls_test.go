package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"promptspool/api/wire"
)

// sent is what arrived at the server.
type sent struct{ Method, URI, Body, Key, Agent, Type, Encoding string }

func TestEachMethodMakesItsCallAndReadsTheAnswer(t *testing.T) {
	cursor := "n"

	for name, tt := range map[string]struct {
		call   func(context.Context, *Client) (any, error)
		sent   sent
		answer string
		want   any
	}{
		"Send": {
			call: func(ctx context.Context, c *Client) (any, error) { return c.Send(ctx, key, 3, []byte("packed")) },
			sent: sent{Method: "POST", URI: "/sync/events", Body: "packed", Encoding: "zstd"},
			answer: `{"success":true,"accepted":1,"duplicate":1,` +
				`"refused":[{"id":"e3","code":"later","reason":"kind is new"}]}`,
			want: wire.BatchAnswer{
				Success:   true,
				Accepted:  1,
				Duplicate: 1,
				Refused:   []wire.Result{{ID: "e3", Code: wire.ResultLater, Reason: "kind is new"}},
			},
		},
		"Verdict": {
			call:   func(ctx context.Context, c *Client) (any, error) { return c.Verdict(ctx, key) },
			sent:   sent{Method: "GET", URI: "/sync/key"},
			answer: `{"success":true,"account":"acme","key_id":"key_1","scope":"app"}`,
			want:   wire.KeyVerdict{Success: true, Account: "acme", KeyID: "key_1", Scope: wire.ScopeApp},
		},
		"Request": {
			call:   func(ctx context.Context, c *Client) (any, error) { return c.Request(ctx, caller, "an/id") },
			sent:   sent{Method: "GET", URI: "/api/public/v2/requests/an%2Fid"},
			answer: `{"success":true,"request_id":"an/id","request":{"kwargs": {"model":"m","a":"<\u003e"}}}`,
			want: wire.Record{
				Success:   true,
				RequestID: "an/id",
				Request:   json.RawMessage(`{"kwargs": {"model":"m","a":"<\u003e"}}`), // byte for byte
			},
		},
		"Trace": {
			call: func(ctx context.Context, c *Client) (any, error) { return c.Trace(ctx, caller, "5b/8e") },
			sent: sent{Method: "GET", URI: "/api/public/v2/traces/5b%2F8e"},
			answer: `{"success":true,"trace_id":"5b8e",` +
				`"spans":[{"id":"r","name":"chat","span_id":"ee","parent_id":null}]}`,
			want: wire.Trace{
				Success: true,
				TraceID: "5b8e",
				Spans:   []wire.TraceSpan{{ID: "r", Name: "chat", SpanID: "ee"}},
			},
		},
		"Search": {
			call: func(ctx context.Context, c *Client) (any, error) {
				hasTag := wire.Filter{Field: "tags", Operator: "contains", Value: json.RawMessage(`"a<b"`)}
				return c.Search(ctx, caller, wire.Search{
					PerPage:     5,
					Cursor:      "c",
					FilterGroup: &wire.Filter{Logic: "AND", Filters: []wire.Filter{hasTag}},
				})
			},
			sent: sent{
				Method: "POST",
				URI:    "/api/public/v2/requests/search",
				Body: `{"filter_group":{"logic":"AND",` +
					`"filters":[{"field":"tags","operator":"contains","value":"a<b"}]},` +
					`"per_page":5,"cursor":"c"}`,
			},
			answer: `{"success":true,"items":[{"request_id":"r"}],"total":1,"next_cursor":"n"}`,
			want: wire.SearchPage{
				Success:    true,
				Items:      []wire.Row{{RequestID: "r"}},
				Paging:     wire.Paging{Total: 1},
				NextCursor: &cursor,
			},
		},
		"Search for everything": {
			call:   func(ctx context.Context, c *Client) (any, error) { return c.Search(ctx, caller, wire.Search{}) },
			sent:   sent{Method: "POST", URI: "/api/public/v2/requests/search", Body: "{}"},
			answer: `{"success":true,"items":[]}`,
			want:   wire.SearchPage{Success: true, Items: []wire.Row{}},
		},
		"Raw": {
			call: func(ctx context.Context, c *Client) (any, error) {
				return c.Raw(ctx, caller, "a/b", wire.Selector{Version: 2, Label: "pro d"})
			},
			sent:   sent{Method: "GET", URI: "/prompt-templates/a%2Fb?label=pro+d&version=2"},
			answer: `{"success":true,"id":7,"prompt_name":"a/b","version":2}`,
			want:   wire.RawTemplate{Success: true, ID: 7, Name: "a/b", Version: 2},
		},
		"Raw, the latest": {
			call: func(ctx context.Context, c *Client) (any, error) {
				return c.Raw(ctx, caller, "greeting", wire.Selector{})
			},
			sent:   sent{Method: "GET", URI: "/prompt-templates/greeting"},
			answer: `{"success":true,"version":3}`,
			want:   wire.RawTemplate{Success: true, Version: 3},
		},
		"Publish": {
			call: func(ctx context.Context, c *Client) (any, error) {
				return c.Publish(ctx, caller, wire.Publish{
					Name:          "greeting",
					Tags:          []string{"t"},
					Blueprint:     json.RawMessage(`{"a":"<&>\u2028"}`),
					Metadata:      json.RawMessage(`{"model":{}}`),
					CommitMessage: "first",
					Labels:        []string{"prod"},
				})
			},
			sent: sent{
				Method: "POST",
				URI:    "/rest/prompt-templates",
				Body: `{"prompt_template":{"prompt_name":"greeting","tags":["t"]},` +
					`"prompt_version":{"prompt_template":{"a":"<&>\u2028"},"commit_message":"first",` +
					`"metadata":{"model":{}}},"release_labels":["prod"]}`,
			},
			answer: `{"success":true,"id":7,"version_number":1}`,
			want:   wire.Published{Success: true, ID: 7, VersionNumber: 1},
		},
		"Publish, the least": {
			call: func(ctx context.Context, c *Client) (any, error) {
				return c.Publish(ctx, caller, wire.Publish{Name: "n", Blueprint: json.RawMessage(`{}`)})
			},
			sent: sent{
				Method: "POST",
				URI:    "/rest/prompt-templates",
				Body: `{"prompt_template":{"prompt_name":"n","tags":null},` +
					`"prompt_version":{"prompt_template":{}}}`,
			},
			answer: `{"success":true}`,
			want:   wire.Published{Success: true},
		},
		"List": {
			call: func(ctx context.Context, c *Client) (any, error) {
				return c.List(ctx, caller, wire.TemplateListQuery{Page: 2, PerPage: 30, Name: "a&b", Label: "prod"})
			},
			sent:   sent{Method: "GET", URI: "/prompt-templates?label=prod&name=a%26b&page=2&per_page=30"},
			answer: `{"success":true,"items":[{"id":7}],"page":2}`,
			want: wire.TemplateList{
				Success: true,
				Items:   []wire.TemplateListItem{{ID: 7}},
				Paging:  wire.Paging{Page: 2},
			},
		},
		"Changes": {
			call: func(ctx context.Context, c *Client) (any, error) {
				q := wire.ChangesQuery{Since: 12, Wait: 30 * time.Second, ProviderBaseURLs: "af"}
				return c.Changes(ctx, caller, q)
			},
			sent:   sent{Method: "GET", URI: "/sync/changes?provider_base_urls=af&since=12&wait=30s"},
			answer: `{"success":true,"revision":13,"names":["greeting"],"of_a_newer_server":1}`,
			want:   wire.Changes{Success: true, Revision: 13, Names: []string{"greeting"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got sent
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				got = sent{
					Method:   r.Method,
					URI:      r.RequestURI,
					Body:     string(body),
					Key:      r.Header.Get("X-API-KEY"),
					Agent:    r.Header.Get("User-Agent"),
					Type:     r.Header.Get("Content-Type"),
					Encoding: r.Header.Get("Content-Encoding"),
				}
				answer(200, tt.answer)(w, r)
			})

			value, err := tt.call(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "answer", value, tt.want)

			tt.sent.Key, tt.sent.Agent = string(key), "promptspool/1.2.3"
			if tt.sent.Body != "" {
				tt.sent.Type = "application/json"
			}
			same(t, "call", got, tt.sent)
		})
	}
}

func TestABatchAnswerMustAccountForEveryEvent(t *testing.T) {
	for _, body := range []string{
		`{"success":true}`,
		`{"success":true,"accepted":4,"duplicate":0,"refused":[]}`,
		`{"success":true,"accepted":6,"duplicate":-1,"refused":[]}`,
		`{"success":true,"accepted":-1,"duplicate":6,"refused":[]}`,
		`{"success":true,"accepted":5,"duplicate":0,"refused":[{"id":"e","code":"later"}]}`,
		`{"success":false,"accepted":5}`,
	} {
		_, err := serve(t, answer(200, body)).Send(t.Context(), key, 5, nil)
		wantAway(t, body, err, wire.Away{Status: 200})
	}
}

func TestAVerdictMustNameAnAccount(t *testing.T) {
	_, err := serve(t, answer(200, `{"success":true,"scope":"full"}`)).Verdict(t.Context(), key)
	wantAway(t, "verdict", err, wire.Away{Status: 200})
}
