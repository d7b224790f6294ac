package registry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
	"promptspool/registry"
	"promptspool/registry/render"
	"promptspool/spool/database/accounts"
	"promptspool/spool/database/keyed/keyedtest"
)

var ann = wire.Identity{Account: "acme", KeyID: "k1", Scope: wire.ScopeFull, Key: "secret", Verified: true}

func newStore() registry.Store { return accounts.New(&keyedtest.Memory{}, time.Now) }

func newRegistry(t *testing.T) *registry.Registry {
	t.Helper()
	return registry.New(registry.Config{Logger: quiet, Store: newStore()})
}

// says returns a completion with this text, to publish under a name.
func says(name, text string) wire.Publish {
	blueprint, _ := json.Marshal(map[string]any{"content": text})
	return wire.Publish{
		PublishedName:    wire.PublishedName{Name: name},
		PublishedVersion: wire.PublishedVersion{Blueprint: blueprint},
	}
}

func publish(t *testing.T, r *registry.Registry, p wire.Publish) wire.Published {
	t.Helper()
	out, err := r.Publish(context.Background(), ann, p)
	if err != nil {
		t.Fatalf("publish %s: %v", p.Name, err)
	}
	return out
}

// text returns the text of a fetched completion.
func text(blueprint json.RawMessage) string {
	var b struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(blueprint, &b); err != nil || len(b.Content) == 0 {
		return fmt.Sprintf("not a completion: %s", blueprint)
	}
	return b.Content[0].Text
}

func equal(t *testing.T, name string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", name, diff)
	}
}

func TestATemplateIsFetchedByNameIdVersionAndLabel(t *testing.T) {
	r := newRegistry(t)
	first := says("greet/en", "one")
	first.Labels, first.Tags, first.CommitMessage = []string{"prod"}, []string{"t"}, "first"
	id := publish(t, r, first).ID
	publish(t, r, says("greet/en", "two"))

	for _, c := range []struct {
		ident   string
		sel     wire.Selector
		text    string
		version int
	}{
		{"greet/en", wire.Selector{}, "two", 2},
		{fmt.Sprint(id), wire.Selector{}, "two", 2},
		{"greet/en", wire.Selector{Version: 1}, "one", 1},
		{"greet/en", wire.Selector{Label: "prod"}, "one", 1},
		{"greet/en", wire.Selector{Label: "prod", Version: 2}, "one", 1},
	} {
		got, err := r.Fetch(context.Background(), ann, c.ident, wire.TemplateFetch{Selector: c.sel})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, fmt.Sprintf("%s %+v", c.ident, c.sel),
			[]any{text(got.Blueprint), got.Version, got.Name, got.Tags},
			[]any{c.text, c.version, "greet/en", []string{"t"}})
	}

	raw, err := r.Raw(context.Background(), ann, "greet/en", wire.Selector{Version: 1})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "raw", []any{*raw.CommitMessage, raw.Labels, raw.Revision}, []any{"first", []string{"prod"}, uint64(2)})
}

func TestWhatIsNotThereIsNamedWithWhatIs(t *testing.T) {
	r := newRegistry(t)
	for _, label := range []string{"staging", "dev"} {
		p := says("greet", "x")
		p.Labels = []string{label}
		publish(t, r, p)
	}
	publish(t, r, says("bare", "x"))

	for _, c := range []struct {
		ident string
		sel   wire.Selector
		want  string
	}{
		{"gone", wire.Selector{}, "There is no template `gone`."},
		{"greet", wire.Selector{Version: 7}, "Version 7 of `greet` does not exist; the latest is 1."},
		{"greet", wire.Selector{Label: "prod"}, "`greet` has no label `prod`; it has: dev, staging."},
		{"bare", wire.Selector{Label: "prod"}, "`bare` has no label `prod`; it has no labels yet."},
		{strings.Repeat("ü", 300), wire.Selector{}, "There is no template `" + strings.Repeat("ü", 100) + "...`."},
	} {
		_, err := r.Fetch(context.Background(), ann, c.ident, wire.TemplateFetch{Selector: c.sel})
		if !wire.IsCode(err, wire.CodeNotFound) || !strings.HasPrefix(wire.AsError(err).Message, c.want) {
			t.Errorf("%q %+v: error %v, want %q", c.ident, c.sel, err, c.want)
		}
	}
}

func TestTheSameContentMakesNoVersionButMovesLabelsAndTags(t *testing.T) {
	r := newRegistry(t)
	p := wire.Publish{
		PublishedName: wire.PublishedName{Name: "greet"},
		PublishedVersion: wire.PublishedVersion{
			Blueprint:     json.RawMessage(`{"content":"x","n":1.0}`),
			Metadata:      json.RawMessage(`{"a":1,"b":"<"}`),
			CommitMessage: "first",
		},
	}

	first := publish(t, r, p)
	p.Blueprint = json.RawMessage(`{ "n": 1.0, "content": [{"type": "text", "text": "x"}] }`)
	p.Metadata = json.RawMessage(`{"b":"\u003c","a":1}`)
	p.Labels, p.Tags, p.CommitMessage = []string{"prod", "prod"}, []string{"t"}, "second"
	again := publish(t, r, p)
	equal(t, "again",
		[]any{again.VersionNumber, again.VersionID, again.Labels, again.Tags, *again.CommitMessage},
		[]any{1, first.VersionID, []string{"prod"}, []string{"t"}, "first"})
	if again.Warning == nil || !strings.Contains(*again.Warning, "second") || first.Warning != nil {
		t.Errorf("the second message vanished: %v, %v", first.Warning, again.Warning)
	}

	p.CommitMessage = "first"
	if same := publish(t, r, p); same.Warning != nil {
		t.Errorf("the same message again: %s", *same.Warning)
	}

	p.Tags = nil
	before, _ := r.Changes(context.Background(), ann, wire.ChangesQuery{})
	equal(t, "tags that are not given stay", publish(t, r, p).Tags, []string{"t"})
	after, _ := r.Changes(context.Background(), ann, wire.ChangesQuery{})
	equal(t, "what changes nothing is no change", after, before)

	p.Metadata = json.RawMessage(`{"a":1.0,"b":"<"}`)
	equal(t, "another metadata is another version", publish(t, r, p).VersionNumber, 2)
}

func TestALabelMovesWithItsHistory(t *testing.T) {
	clock := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	now := func() time.Time { return clock }
	r := registry.New(registry.Config{Logger: quiet, Store: newStore(), Now: now})

	start := clock
	for i, text := range []string{"one", "two", "three"} {
		clock = start.Add(time.Duration(i) * time.Hour)
		p := says("greet", text)
		if i != 1 {
			p.Labels = []string{"prod"}
		}
		publish(t, r, p)
	}

	clock = start.Add(-time.Hour) // the clock is set back: history continues from where it was
	publish(t, r, says("greet", "four"))
	for _, c := range []struct {
		sel  wire.Selector
		at   time.Duration
		want int
	}{
		{wire.Selector{Label: "prod"}, 90 * time.Minute, 1},
		{wire.Selector{Label: "prod"}, 2 * time.Hour, 3},
		{wire.Selector{}, 3 * time.Hour, 4},
		{wire.Selector{Version: 9}, 0, 0},
		{wire.Selector{Label: "gone"}, 0, 0},
	} {
		name, version, err := r.VersionAt(context.Background(), "acme", "1", c.sel, start.Add(c.at))
		if err != nil || name != "greet" || version != c.want {
			t.Errorf("%+v at %v: %s version %d, error %v; want version %d", c.sel, c.at, name, version, err, c.want)
		}
	}

	_, _, err := r.VersionAt(context.Background(), "acme", "gone", wire.Selector{}, start)
	if !wire.IsCode(err, wire.CodeNotFound) {
		t.Errorf("a template that is not there: error %v", err)
	}
}

func TestPublishTellsEveryFaultByItsPathInTheBody(t *testing.T) {
	_, err := newRegistry(t).Publish(context.Background(), ann, wire.Publish{
		PublishedName: wire.PublishedName{Name: "greet"},
		PublishedVersion: wire.PublishedVersion{
			Blueprint: json.RawMessage(`{"content":[{}]}`),
			Metadata:  json.RawMessage(`{"model":{"parameters":{"api_key":"x"}}}`),
		},
	})
	var fields []string
	for _, f := range wire.AsError(err).Fields {
		fields = append(fields, f.Field)
	}
	equal(t, "fields", fields, []string{
		"prompt_version.prompt_template.content[0].type", "prompt_version.metadata.model.parameters.api_key",
	})
}

func TestLabelsAreBounded(t *testing.T) {
	r := newRegistry(t)
	p := says("greet", "x")
	for i := range 256 {
		p.Labels = append(p.Labels, fmt.Sprint("l", i))
	}
	publish(t, r, p)
	p.Labels = []string{"one more"}
	if _, err := r.Publish(context.Background(), ann, p); !wire.IsCode(err, wire.CodeInvalid) {
		t.Errorf("label 257: error %v, want a 422", err)
	}
}

func TestListTellsEachTemplateWithItsLatestVersion(t *testing.T) {
	r := newRegistry(t)
	for _, text := range []string{"one", "two"} {
		publish(t, r, says("b", text))
		publish(t, r, says("a", text))
	}
	list, err := r.List(context.Background(), ann, wire.TemplateListQuery{PerPage: 1, Page: 2})
	if err != nil {
		t.Fatal(err)
	}
	first := list.Items[0]
	equal(t, "page",
		[]any{len(list.Items), first.Name, first.Version, text(first.Blueprint),
			list.Total, list.HasNext, list.HasPrev},
		[]any{1, "b", 2, "two", 2, false, true})
	ranked, err := r.List(context.Background(), ann, wire.TemplateListQuery{PerPage: 1, Page: 2,
		Rank: func(t *wire.Template) float64 { return map[string]float64{"a": 1, "b": 2}[t.Name] }})
	if err != nil || ranked.Items[0].Name != "a" {
		t.Errorf("behind the template of the highest rank comes %+v, %v", ranked.Items, err)
	}
	none, err := r.List(context.Background(), wire.Identity{Account: "other"}, wire.TemplateListQuery{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "another account", []any{none.Items, none.PerPage}, []any{[]wire.TemplateListItem{}, 30})
}

func TestLLMKwargs(t *testing.T) {
	r := newRegistry(t)
	p := wire.Publish{
		PublishedName: wire.PublishedName{Name: "chat"},
		PublishedVersion: wire.PublishedVersion{
			Blueprint: json.RawMessage(`{"messages":[{"role":"user","content":"Hi {who}"}]}`),
		},
	}
	publish(t, r, p)
	p.Name, p.Metadata = "openai", json.RawMessage(`{"model":{"provider":"openai","name":"gpt"}}`)
	publish(t, r, p)
	p.Name, p.Metadata = "acme", json.RawMessage(`{"model":{"provider":"acme","name":"a1"}}`)
	publish(t, r, p)

	vars := map[string]json.RawMessage{"who": json.RawMessage(`"Ann"`)}
	for _, c := range []struct {
		name    string
		ident   string
		fetch   wire.TemplateFetch
		kwargs  string
		warning string
	}{
		{"no provider anywhere", "chat", wire.TemplateFetch{Variables: vars}, "", ""},
		{"the request's provider, without a model", "chat", wire.TemplateFetch{Provider: "openai", Variables: vars},
			`{"messages":[{"role":"user","content":"Hi Ann"}]}`, ""},
		{"the metadata's provider", "openai", wire.TemplateFetch{},
			`{"model":"gpt","messages":[{"role":"user","content":"Hi {who}"}]}`, ""},
		{"a missing variable", "openai", wire.TemplateFetch{Variables: map[string]json.RawMessage{}},
			`{"model":"gpt","messages":[{"role":"user","content":"Hi "}]}`,
			"These variables were not given and are empty: who."},
		{"an unknown provider in the metadata", "acme", wire.TemplateFetch{}, "",
			`llm_kwargs is null: provider "acme" is not one that this version makes llm_kwargs for; it knows ` +
				strings.Join(render.Providers(), ", ") + "."},
	} {
		got, err := r.Fetch(context.Background(), ann, c.ident, c.fetch)
		if err != nil {
			t.Fatal(err)
		}
		warning := ""
		if got.Warning != nil {
			warning = *got.Warning
		}
		equal(t, c.name, []string{string(got.LLMKwargs), warning}, []string{c.kwargs, c.warning})
		if !strings.Contains(string(got.Blueprint), "{who}") {
			t.Errorf("%s: the blueprint was filled: %s", c.name, got.Blueprint)
		}
	}

	_, err := r.Fetch(context.Background(), ann, "chat", wire.TemplateFetch{Provider: "acme"})
	if !wire.IsCode(err, wire.CodeInvalid) {
		t.Errorf("an unknown provider in the request: error %v, want a 422", err)
	}
}

func TestChangesWaitsForAPublishOfItsAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry(t)
		publish(t, r, says("a", "x"))
		start := time.Now()
		ask := func(since uint64, wait time.Duration) wire.Changes {
			c, err := r.Changes(t.Context(), ann, wire.ChangesQuery{Since: since, Wait: wait})
			if err != nil {
				t.Fatal(err)
			}
			c.ProviderBaseURLs = "" // see TestAnotherProviderBaseURLReachesSidecars
			return c
		}
		equal(t, "something to tell", ask(0, time.Hour), wire.Changes{Success: true, Revision: 1, Names: []string{"a"}})
		equal(t, "more than there can be", ask(9, time.Hour),
			wire.Changes{Success: true, Revision: 1, Reset: true, Names: []string{}})
		equal(t, "nothing, and no wait", ask(1, 0), wire.Changes{Success: true, Revision: 1, Names: []string{}})
		equal(t, "time so far", time.Since(start), 0*time.Second)
		equal(t, "nothing for the longest wait", ask(1, time.Hour),
			wire.Changes{Success: true, Revision: 1, Names: []string{}})
		equal(t, "the longest wait", time.Since(start), registry.ChangesWaitMax)

		go func() {
			synctest.Wait()
			<-time.After(time.Second) // virtual: another account publishes, then this one
			if _, err := r.Publish(t.Context(), wire.Identity{Account: "other"}, says("z", "x")); err != nil {
				t.Error(err)
			}
			<-time.After(time.Second)
			publish(t, r, says("b", "x"))
		}()
		start = time.Now()
		equal(t, "woken", ask(1, 30*time.Second), wire.Changes{Success: true, Revision: 2, Names: []string{"b"}})
		equal(t, "woken after", time.Since(start), 2*time.Second)

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		c, err := r.Changes(ctx, ann, wire.ChangesQuery{Since: 2, Wait: 30 * time.Second})
		c.ProviderBaseURLs = ""
		equal(t, "the caller left", []any{c, err},
			[]any{wire.Changes{Success: true, Revision: 2, Names: []string{}}, nil})
	})
}

func TestATemplateIsFoundByItsIDInAnotherSystem(t *testing.T) {
	r := newRegistry(t)
	cms := wire.ExternalID{Source: "cms", ID: "page-7"}
	greet := says("greet", "Hi")
	greet.ExternalIDs = []wire.ExternalID{cms}
	equal(t, "published", publish(t, r, greet).ExternalIDs, greet.ExternalIDs)
	equal(t, "published without ids", publish(t, r, says("other", "Ho")).ExternalIDs, []wire.ExternalID{})

	// The ids stay with the next version, and are replaced by others.
	equal(t, "kept", publish(t, r, says("greet", "Hello")).ExternalIDs, greet.ExternalIDs)
	found := func(external wire.ExternalID) (names []string) {
		list, err := r.List(t.Context(), ann, wire.TemplateListQuery{Source: external.Source, ExternalID: external.ID})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range list.Items {
			equal(t, "listed", item.ExternalIDs, []wire.ExternalID{external})
			names = append(names, item.Name)
		}
		return names
	}
	equal(t, "by the id", found(cms), []string{"greet"})
	equal(t, "by another", found(wire.ExternalID{Source: "cms", ID: "nope"}), []string(nil))

	thief := says("thief", "Mine")
	thief.ExternalIDs = greet.ExternalIDs
	_, err := r.Publish(t.Context(), ann, thief)
	wantFault(t, err, wire.CodeConflict, "greet", "page-7")

	greet.Blueprint, greet.ExternalIDs = says("greet", "Hello").Blueprint, []wire.ExternalID{}
	equal(t, "removed", publish(t, r, greet).ExternalIDs, []wire.ExternalID{})
	equal(t, "its old id", found(cms), []string(nil))
	publish(t, r, thief)
}

func TestTheListKnowsSnippets(t *testing.T) {
	store := newStore()
	r := registry.New(registry.Config{Logger: quiet, Store: store})
	publish(t, r, says("tone", "Be kind."))
	publish(t, r, says("rules", "Be brief."))
	publish(t, r, says("greet", "Hi. @@@tone@@@"))
	listed := func(isSnippet *bool) (names []string) {
		t.Helper()
		list, err := r.List(t.Context(), ann, wire.TemplateListQuery{IsSnippet: isSnippet})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range list.Items {
			if item.IsSnippet {
				item.Name = "@" + item.Name
			}
			names = append(names, item.Name)
		}
		equal(t, "in all", list.Total, len(names))
		return names
	}
	yes, no := true, false
	equal(t, "all", listed(nil), []string{"greet", "rules", "@tone"})
	equal(t, "snippets", listed(&yes), []string{"@tone"})
	equal(t, "the others", listed(&no), []string{"greet", "rules"})

	// It follows the latest version.
	publish(t, r, says("greet", "Hi. @@@rules@@@"))
	equal(t, "snippets", listed(&yes), []string{"@rules"})
}
