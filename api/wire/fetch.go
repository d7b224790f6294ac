package wire

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"promptspool/api/wire/jsonscan"
)

// TemplateFetch is the body of a template fetch. Raw members alias the body that it was
// decoded from. Without a body it means the latest version.
type TemplateFetch struct {
	Selector
	// The provider that llm_kwargs are made for, such as openai; the template's own if it
	// is left out.
	Provider string `json:"provider,omitempty" jsonschema:"maxLength=512"`
	// The model that llm_kwargs are made for; the template's own if it is left out.
	Model string `json:"model,omitempty" jsonschema:"maxLength=512"`
	// The values of the variables. Without them the placeholders stay.
	Variables map[string]json.RawMessage `json:"input_variables,omitzero"`
	// Parameters of the model that replace the template's own.
	Overrides map[string]json.RawMessage `json:"model_parameter_overrides,omitzero"`
	// Whether to leave the placeholders as they are.
	SkipRendering bool `json:"skip_input_variable_rendering,omitempty"`

	// Keep leaves texts that cannot be rendered as they are, for a preview.
	Keep bool `json:"-"`

	// Buffer is where llm_kwargs are written; it is grown as needed. nil: allocate
	// one.
	Buffer *[]byte `json:"-"`
}

// check takes the variables away if the caller wants nothing filled in.
func (t *TemplateFetch) check(*fields) {
	if t.SkipRendering {
		t.Variables, t.SkipRendering = nil, false
	}
}

// RenderedTemplate answers a template fetch.
type RenderedTemplate struct {
	Success         bool             `json:"success"`
	ID              int64            `json:"id"` // the template's id
	Name            string           `json:"prompt_name"`
	Version         int              `json:"version"`
	WorkspaceID     int64            `json:"workspace_id"`
	Tags            []string         `json:"tags"` // the template's tags
	CommitMessage   *string          `json:"commit_message"`
	Metadata        json.RawMessage  `json:"metadata"`
	Blueprint       json.RawMessage  `json:"prompt_template"`
	LLMKwargs       json.RawMessage  `json:"llm_kwargs"`
	ProviderBaseURL *ProviderBaseURL `json:"provider_base_url"`
	Snippets        []UsedSnippet    `json:"snippets"`
	Warning         *string          `json:"warning"`

	Cache string        `json:"-"` // "hit", "stale" or "miss"; "" at the server. Sent as X-Cache
	Age   time.Duration `json:"-"` // since the copy was known to be current; sent as Age, in seconds
}

// AppendJSON appends the template as encoding/json would, but copies raw members as they
// are. They were checked when they were published or made; checking them again took
// longer than the rest of a fetch.
func (t *RenderedTemplate) AppendJSON(b []byte) []byte {
	b = append(b, `{"success":`...)
	b = strconv.AppendBool(b, t.Success)
	b = strconv.AppendInt(append(b, `,"id":`...), t.ID, 10)
	b = jsonscan.AppendString(append(b, `,"prompt_name":`...), t.Name)
	b = strconv.AppendInt(append(b, `,"version":`...), int64(t.Version), 10)
	b = strconv.AppendInt(append(b, `,"workspace_id":`...), t.WorkspaceID, 10)
	b = appendList(append(b, `,"tags":`...), t.Tags, jsonscan.AppendString)
	b = appendText(append(b, `,"commit_message":`...), t.CommitMessage)

	b = appendRaw(append(b, `,"metadata":`...), t.Metadata)
	b = appendRaw(append(b, `,"prompt_template":`...), t.Blueprint)
	b = appendRaw(append(b, `,"llm_kwargs":`...), t.LLMKwargs)

	b = appendProviderBaseURL(append(b, `,"provider_base_url":`...), t.ProviderBaseURL)
	b = appendList(append(b, `,"snippets":`...), t.Snippets, appendSnippet)
	b = appendText(append(b, `,"warning":`...), t.Warning)

	return append(b, '}')
}

func appendSnippet(b []byte, s UsedSnippet) []byte {
	b = jsonscan.AppendString(append(b, `{"prompt_name":`...), s.Name)
	b = strconv.AppendInt(append(b, `,"version":`...), int64(s.Version), 10)
	b = appendText(append(b, `,"label":`...), s.Label)
	return append(b, '}')
}

func appendList[T any](b []byte, list []T, appendOne func([]byte, T) []byte) []byte {
	if list == nil {
		return append(b, "null"...)
	}

	b = append(b, '[')
	for i, e := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendOne(b, e)
	}
	return append(b, ']')
}

func appendText(b []byte, text *string) []byte {
	if text == nil {
		return append(b, "null"...)
	}
	return jsonscan.AppendString(b, *text)
}

func appendRaw(b []byte, raw json.RawMessage) []byte {
	if raw == nil {
		return append(b, "null"...)
	}
	return append(b, raw...)
}

// ProviderBaseURLs are the URLs at which apps should call providers, by the provider's
// name.
type ProviderBaseURLs map[string]string

// ProviderBaseURL is one of them, as a template's reply has it. Clients read only its
// URL.
type ProviderBaseURL struct {
	ID       int64  `json:"id"`   // from 1, in the order of the providers' names
	Name     string `json:"name"` // the name that the operator gave it
	Provider string `json:"provider"`
	URL      string `json:"url"`
}

// Of returns the URL for a provider; nil if there is none.
func (u ProviderBaseURLs) Of(provider string) *ProviderBaseURL {
	url, ok := u[provider]
	if !ok || url == "" {
		return nil
	}
	base := &ProviderBaseURL{Name: provider, Provider: provider, URL: url}
	// Counted, because a map has no order: the same providers always get the same ids.
	for other := range u {
		if other <= provider {
			base.ID++
		}
	}

	return base
}

// Digest returns a short hash, by which two processes learn whether they have the same
// URLs.
func (u ProviderBaseURLs) Digest() string {
	// Sorted by key; a map of strings always encodes.
	text, _ := json.Marshal(map[string]string(u))
	if len(u) == 0 {
		// A nil map and an empty one are the same.
		text = nil
	}

	h := fnv.New64a()
	_, _ = h.Write(text) // a hash never fails

	return fmt.Sprintf("%016x", h.Sum64())
}

func appendProviderBaseURL(b []byte, u *ProviderBaseURL) []byte {
	if u == nil {
		return append(b, "null"...)
	}

	b = strconv.AppendInt(append(b, `{"id":`...), u.ID, 10)
	b = jsonscan.AppendString(append(b, `,"name":`...), u.Name)
	b = jsonscan.AppendString(append(b, `,"provider":`...), u.Provider)
	b = jsonscan.AppendString(append(b, `,"url":`...), u.URL)

	return append(b, '}')
}
