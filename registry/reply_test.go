package registry_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"promptspool/api/wire"
	"promptspool/registry"
)

// member returns a member of a reply as JSON, as an app would read it.
func member(t *testing.T, reply wire.RenderedTemplate, name string) string {
	t.Helper()

	var o map[string]json.RawMessage
	if err := json.Unmarshal(reply.AppendJSON(nil), &o); err != nil {
		t.Fatal(err)
	}

	return string(o[name])
}

// SDKs choose the provider's client, and the function to call, by metadata.model of the
// reply.
func TestAReplyNamesTheModelThatItsArgumentsAreFor(t *testing.T) {
	const (
		gpt = `{"model":{"provider":"openai","name":"gpt-4o","parameters":{"temperature":0.50,"seed":1}},` +
			`"owner":"ann"}`
		claude = `{"model":{"provider":"anthropic","name":"claude-x","parameters":{"max_tokens":9}}}`
	)

	chatGPT := `{"model":{"provider":"openai","name":"gpt-4o","parameters":{"temperature":0.50,"seed":1},` +
		`"api_type":"chat-completions"},"owner":"ann"}`
	r := newRegistry(t)
	for _, c := range []struct{ name, metadata, provider, model, want, warns string }{
		{"as published", gpt, "", "", chatGPT, ""},
		{"its own provider", gpt, "openai", "gpt-4o", chatGPT, ""},
		{"another spelling of the same API",
			`{"model":{"provider":"openai.azure","name":"a","api_type":"chat.completions"}}`, "", "",
			`{"model":{"provider":"openai.azure","name":"a","api_type":"chat-completions"}}`, ""},
		{"another API", `{"model":{"provider":"openai","name":"a","api_type":"responses"}}`, "", "",
			`{"model":{"provider":"openai","name":"a","api_type":"responses"}}`, ""},
		{"an API without arguments", `{"model":{"provider":"openai","name":"a","api_type":"images"}}`, "", "",
			`{"model":{"provider":"openai","name":"a","api_type":"images"}}`, "images"},
		{"another model", gpt, "", "gpt-5",
			`{"model":{"provider":"openai","name":"gpt-5","api_type":"chat-completions",` +
				`"parameters":{"temperature":0.50,"seed":1}},"owner":"ann"}`, ""},
		{"another provider and model", gpt, "anthropic", "claude-y",
			`{"model":{"provider":"anthropic","name":"claude-y","parameters":{"temperature":0.50}},` +
				`"owner":"ann"}`, "seed"},
		{"another provider without a model", gpt, "anthropic", "",
			`{"model":{"provider":"anthropic","name":null,"parameters":{"temperature":0.50}},"owner":"ann"}`, "gpt-4o"},
		{"to OpenAI", claude, "openai", "gpt-4o",
			`{"model":{"provider":"openai","name":"gpt-4o","api_type":"chat-completions",` +
				`"parameters":{"max_tokens":9}}}`, ""},
		{"the same models elsewhere", gpt, "openai.azure", "",
			`{"model":{"provider":"openai.azure","name":"gpt-4o","api_type":"chat-completions",` +
				`"parameters":{"temperature":0.50,"seed":1}},"owner":"ann"}`, ""},
		{"nothing published", `null`, "openai", "gpt-4o",
			`{"model":{"provider":"openai","name":"gpt-4o","api_type":"chat-completions","parameters":{}}}`, ""},
		{"nothing at all", `null`, "", "", `null`, ""},
		{"no model", `{"owner":"ann"}`, "", "", `{"owner":"ann"}`, ""},
	} {
		p := wire.Publish{
			PublishedName: wire.PublishedName{Name: c.name},
			PublishedVersion: wire.PublishedVersion{
				Blueprint: json.RawMessage(`{"type":"chat","messages":[{"role":"user","content":"hi"}]}`),
				Metadata:  json.RawMessage(c.metadata),
			},
		}
		publish(t, r, p)

		reply, err := r.Fetch(t.Context(), ann, c.name, wire.TemplateFetch{Provider: c.provider, Model: c.model})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}

		equal(t, c.name, member(t, reply, "metadata"), c.want)
		warning := member(t, reply, "warning")
		if (warning != "null") != (c.warns != "") || !strings.Contains(warning, c.warns) {
			t.Errorf("%s: warning %s", c.name, warning)
		}

		raw, err := r.Raw(t.Context(), ann, c.name, latest)
		if err != nil || string(raw.Metadata) != c.metadata {
			t.Errorf("%s: published as %s, error %v", c.name, raw.Metadata, err)
		}
	}
}

func TestAProviderBaseURLIsAnObject(t *testing.T) {
	r := registry.New(registry.Config{
		Store:  newStore(),
		Logger: quiet,
		ProviderBaseURLs: map[string]string{
			"anthropic": "https://a.example", "openai": "https://o.example/v1",
		},
	})
	p := says("greet", "hi")
	p.Metadata = json.RawMessage(`{"model":{"provider":"openai","name":"gpt-4o"}}`)
	publish(t, r, p)

	for provider, want := range map[string]string{
		"":          `{"id":2,"name":"openai","provider":"openai","url":"https://o.example/v1"}`,
		"anthropic": `{"id":1,"name":"anthropic","provider":"anthropic","url":"https://a.example"}`,
		"mistral":   `null`,
	} {
		reply, err := r.Fetch(t.Context(), ann, "greet", wire.TemplateFetch{Provider: provider, Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "for "+provider, member(t, reply, "provider_base_url"), want)
	}
}

// Another setting of the server is not a change of a template, but sidecars must learn of
// it.
func TestAnotherProviderBaseURLReachesSidecars(t *testing.T) {
	store := newStore()
	serving := func(url string) *registry.Registry {
		urls := map[string]string{"openai": url}
		return registry.New(registry.Config{Store: store, Logger: quiet, ProviderBaseURLs: urls})
	}
	url := func(t *testing.T, c *sidecar, sel wire.Selector) string {
		fetch := wire.TemplateFetch{Selector: sel, Provider: "openai", Model: "m"}
		reply, err := c.Fetch(context.Background(), ann, "greet", fetch)
		if err != nil {
			t.Fatal(err)
		}
		var u struct{ URL string }
		if err := json.Unmarshal([]byte(member(t, reply, "provider_base_url")), &u); err != nil {
			t.Error(err)
		}
		return u.URL + " " + reply.Cache
	}

	scene(t, "of a server that was restarted", func(t *testing.T, s *server, dir string) {
		s.set(func() { s.behind = serving("https://one") })
		s.publish(t, says("greet", "hi"))
		c := start(t, dir, s)
		url(t, c, latest)
		equal(t, "before", url(t, c, latest), "https://one hit")
		equal(t, "a version, before", url(t, c, wire.Selector{Version: 1}), "https://one hit")

		s.goAway()
		synctest.Wait()
		equal(t, "without the server", url(t, c, latest), "https://one stale")
		s.set(func() { s.behind = serving("https://two") })
		s.comeBack()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		equal(t, "after", url(t, c, latest), "https://two hit")
		equal(t, "a version, after", url(t, c, wire.Selector{Version: 1}), "https://two hit")

		s.goAway()
		c.stop()
		c = start(t, dir, s)
		equal(t, "after a restart of the sidecar", url(t, c, latest), "https://two stale")
	})

	scene(t, "of a server that reads its settings anew", func(t *testing.T, s *server, dir string) {
		r := serving("https://one")
		s.set(func() { s.behind = r })
		s.publish(t, says("greet", "hi"))
		c := start(t, dir, s)
		url(t, c, latest)
		r.SetProviderBaseURLs(wire.ProviderBaseURLs{"openai": "https://two"})
		synctest.Wait()
		equal(t, "after", url(t, c, latest), "https://two hit")
	})

	scene(t, "of a server that was restarted without the sidecar", func(t *testing.T, s *server, dir string) {
		s.set(func() { s.behind = serving("https://one") })
		s.publish(t, says("greet", "hi"))
		c := start(t, dir, s)
		url(t, c, wire.Selector{Version: 1})
		c.stop()

		s.set(func() { s.behind = serving("https://two") })
		c = start(t, dir, s)
		synctest.Wait()
		equal(t, "a version", url(t, c, wire.Selector{Version: 1}), "https://two hit")
		equal(t, "the latest", url(t, c, latest), "https://two miss")
	})
}
