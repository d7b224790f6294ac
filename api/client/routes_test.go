package client

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"promptspool/api"
	"promptspool/api/wire"
	"promptspool/metrics"
)

// echo is every capability of a real API. It answers with what it was asked.
type echo struct{ wire.Records }

func (echo) Authenticate(_ context.Context, k wire.Secret) (wire.Identity, error) {
	if k != key {
		return wire.Identity{}, wire.Errorf(wire.CodeUnauthorized, "This key is not known.")
	}
	return caller, nil
}

func (echo) Record(_ context.Context, _ wire.Identity, events []wire.Event) ([]wire.Result, error) {
	results := make([]wire.Result, len(events))
	for i, e := range events {
		results[i] = wire.Result{ID: e.ID, Code: wire.ResultLater, Reason: string(e.Body)}
	}
	return results, nil
}

func (echo) Request(_ context.Context, _ wire.Identity, id string) (wire.Record, error) {
	return wire.Record{Success: true, RequestID: id}, nil
}

func (echo) Search(_ context.Context, _ wire.Identity, s wire.Search) (wire.SearchPage, error) {
	return wire.SearchPage{
		Success:    true,
		Paging:     wire.Paging{Page: s.Page, PerPage: s.PerPage},
		NextCursor: &s.Cursor,
		Items:      []wire.Row{{FunctionName: string(s.FilterGroup.Filters[0].Value)}},
	}, nil
}

func (echo) Trace(_ context.Context, _ wire.Identity, trace string) (wire.Trace, error) {
	return wire.Trace{Success: true, TraceID: trace, Spans: []wire.TraceSpan{}}, nil
}

func (echo) Orphans(_ context.Context, _ wire.Identity, q wire.OrphanQuery) (wire.OrphanPage, error) {
	return wire.OrphanPage{Success: true, Total: int64(q.PerPage), NextCursor: &q.Cursor}, nil
}

func (echo) Fetch(
	_ context.Context, _ wire.Identity, ident string, f wire.TemplateFetch,
) (wire.RenderedTemplate, error) {
	return wire.RenderedTemplate{
		Success:   true,
		Name:      ident,
		Version:   f.Version,
		LLMKwargs: f.Variables["v"],
		Metadata:  f.Overrides["o"],
		Tags:      []string{f.Provider, f.Model, f.Label},
	}, nil
}

func (echo) Source(_ context.Context, _ wire.Identity, ident string, s wire.Selector) (wire.RawTemplate, error) {
	return wire.RawTemplate{Success: true, Name: "source of " + ident, Version: s.Version}, nil
}

func (echo) Patch(_ context.Context, _ wire.Identity, ident string, p wire.TemplatePatch) (wire.Published, error) {
	return wire.Published{
		Success:       true,
		Name:          ident,
		VersionNumber: p.Version,
		Labels:        p.Labels,
		CommitMessage: &p.CommitMessage,
		Blueprint:     p.Messages,
		Metadata:      p.ResponseFormat,
	}, nil
}

func (echo) Labels(_ context.Context, _ wire.Identity, ident string) (wire.Labels, error) {
	return wire.Labels{Success: true, Labels: []wire.ReleaseLabel{{Name: ident}}}, nil
}

func (echo) CreateLabel(
	_ context.Context, _ wire.Identity, ident string, w wire.LabelWrite, _ string,
) (wire.PlacedLabel, error) {
	return wire.PlacedLabel{Success: true, Name: ident + " " + w.Name, Version: w.Version}, nil
}

func (echo) MoveLabel(
	_ context.Context, _ wire.Identity, label int64, version int, _ string,
) (wire.PlacedLabel, error) {
	return wire.PlacedLabel{Success: true, ID: label, Version: version}, nil
}

func (echo) DeleteLabel(_ context.Context, _ wire.Identity, label int64, _ string) error {
	if label != 65537 {
		return wire.Errorf(wire.CodeNotFound, "There is no such label.")
	}

	return nil
}

func (echo) Archive(_ context.Context, _ wire.Identity, ident, _ string) error {
	return named("a/b", ident)
}

func (echo) Restore(_ context.Context, _ wire.Identity, ident, _ string) error {
	return named("a/b", ident)
}

func named(want, got string) error {
	if got != want {
		return wire.Errorf(wire.CodeNotFound, "%s is not %s.", got, want)
	}

	return nil
}

func (echo) Raw(_ context.Context, _ wire.Identity, ident string, s wire.Selector) (wire.RawTemplate, error) {
	return wire.RawTemplate{Success: true, Name: ident, Version: s.Version, Labels: []string{s.Label}}, nil
}

func (echo) Publish(_ context.Context, _ wire.Identity, p wire.Publish) (wire.Published, error) {
	return wire.Published{
		Success:       true,
		Name:          p.Name,
		Tags:          p.Tags,
		Labels:        p.Labels,
		Blueprint:     p.Blueprint,
		Metadata:      p.Metadata,
		CommitMessage: &p.CommitMessage,
		ExternalIDs:   p.ExternalIDs,
	}, nil
}

func (echo) List(_ context.Context, _ wire.Identity, q wire.TemplateListQuery) (wire.TemplateList, error) {
	if q.Label == "busy" {
		busy := wire.Unavailable(1500*time.Millisecond, "Come back.")
		busy.Affects = wire.AffectsAccount
		return wire.TemplateList{}, busy
	}

	return wire.TemplateList{
		Success: true,
		Paging:  wire.Paging{Page: q.Page, PerPage: q.PerPage},
		Items: []wire.TemplateListItem{{
			Name:        q.Name + " " + q.Label,
			ExternalIDs: []wire.ExternalID{{Source: q.Source, ID: q.ExternalID}},
			IsSnippet:   q.IsSnippet != nil && *q.IsSnippet,
		}},
	}, nil
}

func (echo) Changes(_ context.Context, _ wire.Identity, q wire.ChangesQuery) (wire.Changes, error) {
	return wire.Changes{Success: true, Revision: q.Since + uint64(q.Wait), ProviderBaseURLs: q.ProviderBaseURLs}, nil
}

// realAPI returns a client of the real API, whose capabilities are echoes.
func realAPI(t *testing.T) *Client {
	t.Helper()
	e := echo{}
	server := api.New(api.Config{
		Name:          "here",
		Version:       "test",
		Recorder:      e,
		Records:       e,
		Templates:     e,
		Changes:       e,
		Authenticator: e,
		Metrics:       metrics.New("server", "test"),
		Logger:        slog.New(slog.DiscardHandler),
	}).NewServer()

	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(ln) }()
	t.Cleanup(func() {
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})

	return dial(t, "http://"+ln.Addr().String())
}

func TestTemplatesMayBeCalledAnything(t *testing.T) {
	c := realAPI(t)
	check := func(name string) error {
		got, err := c.Raw(t.Context(), caller, name, wire.Selector{Version: 3, Label: name})
		if err == nil {
			same(t, "name", got.Name, name)
			same(t, "label", got.Labels, []string{name})
		}
		return err
	}

	for _, name := range []string{
		"plain", "a/b", "/a", "a/", "a//b", "/", "//", "50%", "a%2Fb", "%", "%25", "a b", "a+b", "a?b=c#d",
		"a;b&c", "ü/é", "提示 😀", "12", ".", "..", "../track-request", "a/../b", `"quoted"`, "back\\slash",
		"{x}",
	} {
		if err := check(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}

	rapid.Check(t, func(r *rapid.T) {
		if name := rapid.StringN(1, 40, -1).Draw(r, "name"); check(name) != nil {
			r.Errorf("%q: %v", name, check(name))
		}
	})
}

func TestTheRealAPIAcceptsEveryCall(t *testing.T) {
	c := realAPI(t)
	ctx := t.Context()

	trace, err := c.Trace(ctx, caller, "a b")
	if err != nil || trace.TraceID != "a b" {
		t.Errorf("Trace: %+v, %v", trace, err)
	}
	orphans, err := c.Orphans(ctx, caller, wire.OrphanQuery{PerPage: 7, Cursor: "a b"})
	if err != nil || orphans.Total != 7 || *orphans.NextCursor != "a b" {
		t.Errorf("orphans: %+v %v", orphans, err)
	}

	event := wire.Event{
		ID:         wire.NewID(),
		Kind:       wire.KindScore,
		RequestID:  wire.NewID(),
		AcceptedAt: time.Unix(1, 0),
		Sidecar:    "s",
		Body:       json.RawMessage(`{"score":1}`),
	}
	packer, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	batch, err := c.Send(ctx, key, 1, packer.EncodeAll(event.AppendLine(nil), nil))
	check(t, "batch", batch, err, wire.BatchAnswer{
		Success: true,
		Refused: []wire.Result{{ID: event.ID, Code: wire.ResultLater, Reason: `{"score":1}`}},
	})

	verdict, err := c.Verdict(ctx, key)
	check(t, "verdict", verdict, err, wire.KeyVerdict{Success: true, Account: "acme", Scope: wire.ScopeFull})

	record, err := c.Request(ctx, caller, event.RequestID)
	check(t, "record", record.RequestID, err, event.RequestID)

	isTagged := wire.Filter{Field: "tags", Operator: "is", Value: json.RawMessage(`"<>"`)}
	page, err := c.Search(ctx, caller, wire.Search{
		Page:        2,
		PerPage:     7,
		FilterGroup: &wire.Filter{Filters: []wire.Filter{isTagged}},
	})
	check(t, "page", page.PerPage, err, 7)
	check(t, "filter", page.Items[0].FunctionName, err, `"<>"`)

	message := "m"
	published, err := c.Publish(ctx, caller, wire.Publish{
		PublishedName: wire.PublishedName{
			Name: "a/b",
			Tags: []string{"t"},
		},
		PublishedVersion: wire.PublishedVersion{
			Blueprint:     json.RawMessage(`{"n":1e999,"s":"<\u2028>"}`),
			CommitMessage: message,
		},
		PublishedPlace: wire.PublishedPlace{
			Labels:      []string{"prod"},
			ExternalIDs: []wire.ExternalID{{Source: "cms", ID: "7"}},
		},
	})
	check(t, "published", published, err, wire.Published{
		Success:       true,
		Name:          "a/b",
		Tags:          []string{"t"},
		Labels:        []string{"prod"},
		Blueprint:     json.RawMessage(`{"n":1e999,"s":"<\u2028>"}`),
		Metadata:      json.RawMessage("null"),
		CommitMessage: &message,
		ExternalIDs:   []wire.ExternalID{{Source: "cms", ID: "7"}},
		Warnings:      []wire.Finding{},
	})

	external, isSnippet := wire.ExternalID{Source: "cms", ID: "é&7"}, true
	list, err := c.List(ctx, caller, wire.TemplateListQuery{Page: 3, PerPage: 4, Name: "a&b", Label: "c d",
		Source: external.Source, ExternalID: external.ID, IsSnippet: &isSnippet})
	check(t, "external id", list.Items[0].ExternalIDs[0], err, external)
	check(t, "is a snippet", list.Items[0].IsSnippet, err, true)
	check(t, "list", list.Items[0].Name, err, "a&b c d")
	check(t, "page of the list", list.Page, err, 3)

	changes, err := c.Changes(ctx, caller, wire.ChangesQuery{
		Since:            7,
		Wait:             30 * time.Second,
		ProviderBaseURLs: "af",
	})
	check(t, "changes", changes.Revision, err, 7+uint64(30*time.Second))
	check(t, "base URLs", changes.ProviderBaseURLs, err, "af")
}

func check(t *testing.T, what string, got any, err error, want any) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	same(t, what, got, want)
}

func TestTheRealAPIsErrorsArrive(t *testing.T) {
	c := realAPI(t)

	_, err := c.Verdict(t.Context(), "ps_unknown")
	same(t, "code", wire.AsError(err).Code, wire.CodeUnauthorized)
	same(t, "message", wire.AsError(err).Message, "This key is not known.")

	_, err = c.List(t.Context(), caller, wire.TemplateListQuery{Label: "busy"})
	same(t, "busy", wire.AsError(err), &wire.Error{
		Code:       wire.CodeUnavailable,
		Message:    "Come back.",
		Fields:     []wire.FieldError{},
		RetryAfter: 2 * time.Second,
		Affects:    wire.AffectsAccount,
	})

	_, err = c.Request(t.Context(), caller, "no id")
	reason := "must be a UUIDv7, as track-request returned it"
	same(t, "fields", wire.AsError(err).Fields, []wire.FieldError{{Field: "request_id", Reason: reason}})

	_, err = c.Send(t.Context(), key, 1, []byte("not zstd"))
	same(t, "batch", wire.AsError(err).Code, wire.CodeBadJSON)
	_, err = c.Raw(t.Context(), caller, "", wire.Selector{})
	same(t, "no name", wire.AsError(err).Code, wire.CodeNotFound)
}

func TestEditingCallsArriveAsTheyWereMade(t *testing.T) {
	c := realAPI(t)
	ctx := t.Context()

	fetched, err := c.Fetch(ctx, caller, "a/b", wire.TemplateFetch{
		Selector:  wire.Selector{Version: 3},
		Provider:  "openai",
		Model:     "m",
		Variables: map[string]json.RawMessage{"v": json.RawMessage(`{"x":1}`)},
		Overrides: map[string]json.RawMessage{"o": json.RawMessage(`2`)},
	})
	kwargs, metadata := string(fetched.LLMKwargs), string(fetched.Metadata)
	same(t, "fetched", []any{fetched.Name, fetched.Version, kwargs, metadata, fetched.Tags, err},
		[]any{"a/b", 3, `{"x":1}`, `2`, []string{"openai", "m", ""}, nil})

	source, err := c.Source(ctx, caller, "a/b", wire.Selector{Version: 2})
	same(t, "source", []any{source.Name, source.Version, err}, []any{"source of a/b", 2, nil})

	patched, err := c.Patch(ctx, caller, "a/b", wire.TemplatePatch{
		Selector:       wire.Selector{Version: 2},
		Messages:       json.RawMessage(`{"0":{}}`),
		ResponseFormat: json.RawMessage(`null`),
		CommitMessage:  "why",
		Labels:         []string{"prod"},
	})
	same(t, "patched", []any{patched.Name, patched.VersionNumber, err}, []any{"a/b", 2, nil})
	same(t, "its content", []any{string(patched.Blueprint), string(patched.Metadata)}, []any{`{"0":{}}`, `null`})
	same(t, "its message and labels", []any{*patched.CommitMessage, patched.Labels}, []any{"why", []string{"prod"}})

	labels, err := c.Labels(ctx, caller, "a/b")
	same(t, "labels", []any{labels.Labels[0].Name, err}, []any{"a/b", nil})
	placed, err := c.CreateLabel(ctx, caller, "a/b", wire.LabelWrite{Name: "prod", Version: 7}, "")
	same(t, "created", []any{placed.Name, placed.Version, err}, []any{"a/b prod", 7, nil})
	placed, err = c.MoveLabel(ctx, caller, 65537, 8, "")
	same(t, "moved", []any{placed.ID, placed.Version, err}, []any{int64(65537), 8, nil})
	same(t, "deleted", c.DeleteLabel(ctx, caller, 65537, ""), nil)
	if err := c.DeleteLabel(ctx, caller, 1, ""); !wire.IsCode(err, wire.CodeNotFound) {
		t.Errorf("a label that does not exist: %v", err)
	}

	same(t, "archived", c.Archive(ctx, caller, "a/b", ""), nil)
	same(t, "restored", c.Restore(ctx, caller, "a/b", ""), nil)
}
