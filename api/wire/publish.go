package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"promptspool/api/wire/jsonscan"
)

// Publish is a publish in one object, as older clients send it. Raw members alias the body that it was decoded
// from.
type Publish struct {
	PublishedName
	PublishedVersion
	PublishedPlace

	Author string `json:"-"` // an email, or the id of a key; "" is the identity's key
	Base   *int   `json:"-"` // publish only if this is the latest version, 0 for none; nil means always
}

// Published answers a publish.
type Published struct {
	Success       bool            `json:"success"`
	ID            int64           `json:"id"` // the template's id
	Name          string          `json:"prompt_name"`
	VersionID     int64           `json:"prompt_version_id"`
	VersionNumber int             `json:"version_number"`
	Tags          []string        `json:"tags"` // the template's tags
	Labels        []string        `json:"release_labels"`
	Blueprint     json.RawMessage `json:"prompt_template"`
	Metadata      json.RawMessage `json:"metadata"`
	CommitMessage *string         `json:"commit_message"`
	ExternalIDs   []ExternalID    `json:"external_ids"`
	Warnings      []Finding       `json:"warnings"` // parts that cannot be rendered, or are hardly meant so
	Warning       *string         `json:"warning"`  // null if everything was done as asked
}

// Finding is a place in a template that cannot be rendered. Such a version can be
// published; apps that fetch it get that text as it was written.
type Finding struct {
	Path    string `json:"path"`    // of the text within the blueprint: messages[1].content[0].text
	Line    int    `json:"line"`    // within that text, from 1
	Column  int    `json:"column"`  // in characters, from 1
	Message string `json:"message"` // a predicate: "has a { that is not closed"
}

// String returns the finding as one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", f.Path, f.Line, f.Column, f.Message)
}

// PublishBody is the body of POST /rest/prompt-templates. Its prompt_template and prompt_version may each have more
// members than they need, because some SDKs send one object as both. The registry checks the blueprint.
type PublishBody struct {
	// Which template it is, and its tags.
	Template PublishedName `json:"prompt_template"`
	// The content of the version.
	Version PublishedVersion `json:"prompt_version"`
	PublishedPlace
}

// PublishedName says which template it is. One that does not exist is made.
type PublishedName struct {
	// The template's name; it may have slashes, for folders.
	Name string `json:"prompt_name" jsonschema:"minLength=1,maxLength=512"`
	// The template's tags; as they are if they are left out.
	Tags []string `json:"tags,omitzero"`
}

// PublishedVersion is what the version holds.
type PublishedVersion struct {
	// The text, as a blueprint.
	Blueprint json.RawMessage `json:"prompt_template" jsonschema:"type=object"`
	// The model: {"model": {"provider", "name", "parameters"}}; and whatever else you
	// want to keep.
	Metadata json.RawMessage `json:"metadata,omitempty" jsonschema:"type=object"`
	// The change and its reason.
	CommitMessage string `json:"commit_message,omitempty" jsonschema:"maxLength=512"`
}

// PublishedPlace is what leads to a version that is published.
type PublishedPlace struct {
	// Labels that point to this version from now on.
	Labels []string `json:"release_labels,omitempty"`
	// The template's ids in other systems; as they are if they are left out.
	ExternalIDs []ExternalID `json:"external_ids,omitzero" jsonschema:"maxItems=32"`
}

// DecodePublish reads POST /rest/prompt-templates.
func DecodePublish(object Object) (Publish, error) {
	f := fields{object: object}
	var b PublishBody
	f.read(&b)
	p := Publish{PublishedName: b.Template, PublishedVersion: b.Version, PublishedPlace: b.PublishedPlace}
	p.check(&f, "prompt_template.prompt_name")

	return p, f.err()
}

// DecodeOldPublish reads the older spelling of a publish.
func DecodeOldPublish(object Object) (Publish, error) {
	f := fields{object: object}
	var p Publish
	f.read(&p)
	p.check(&f, "prompt_name")

	return p, f.err()
}

// check looks at the names. name is the path of the template's.
func (p *Publish) check(f *fields, name string) {
	isControl := func(r rune) bool { return r < ' ' || r == 0x7f }
	if strings.TrimSpace(p.Name) != p.Name || strings.ContainsFunc(p.Name, isControl) {
		f.fault(name, "must not begin or end with a blank, nor contain control characters")
	}
	f.labels("release_labels", p.Labels)
}

// externalIDs reads an array of external ids; nil if it is absent.
func (f *fields) externalIDs(name string) []ExternalID {
	v, ok := f.raw(name, false)
	if !ok {
		return nil
	}
	if v[0] != '[' {
		f.fault(name, "must be an array of objects with source and external_id")
		return nil
	}

	ids := []ExternalID{}
	for i, element := range jsonscan.Elements(v) {
		if i == ExternalIDsMax {
			f.fault(name, "has more than %d entries", ExternalIDsMax)
			break
		}
		path := name + "[" + strconv.Itoa(i) + "]"
		if element[0] != '{' {
			f.fault(path, "must be an object with source and external_id")
			continue
		}

		var id ExternalID
		f.readObject(path, element, &id)
		ids = append(ids, id)
	}

	return ids
}

// labels checks the names of labels.
func (f *fields) labels(field string, names []string) {
	for _, l := range names {
		if l == "" {
			f.fault(field, "must not contain an empty label")
		}
	}
}

// TemplatePatch is the body of PATCH /rest/prompt-templates/{name or id}: how the next
// version differs from its base. Raw members that are nil stay as they are, and those
// that are JSON null are removed. They alias the body that they were decoded from.
type TemplatePatch struct {
	Selector // the base; the zero Selector is the latest version

	// Messages of a chat: an object of index and message replaces these, an array
	// replaces all.
	Messages json.RawMessage `json:"messages,omitempty" jsonschema:"anyof_type=object;array"`
	// Content of a completion, in the same way.
	Content json.RawMessage `json:"content,omitempty" jsonschema:"anyof_type=object;array"`
	// Tools, in the same way; null removes them.
	Tools json.RawMessage `json:"tools,omitempty" jsonschema:"anyof_type=object;array;null"`
	// Functions, in the same way; null removes them.
	Functions json.RawMessage `json:"functions,omitempty" jsonschema:"anyof_type=object;array;null"`

	// Which function the model must call; null removes it.
	FunctionCall json.RawMessage `json:"function_call,omitempty" jsonschema:"anyof_type=string;object;null"`
	// Which tool the model must call; null removes it.
	ToolChoice json.RawMessage `json:"tool_choice,omitempty" jsonschema:"anyof_type=string;object;null"`
	// Parameters of the model, which replace those of the same names.
	ModelParameters json.RawMessage `json:"model_parameters,omitempty" jsonschema:"type=object"`
	// The model's response_format; null removes it.
	ResponseFormat json.RawMessage `json:"response_format,omitempty" jsonschema:"anyof_type=object;null"`

	// The change and its reason.
	CommitMessage string `json:"commit_message,omitempty" jsonschema:"maxLength=512"`
	// Labels that point to the new version from now on.
	Labels []string `json:"release_labels,omitempty"`

	Author string `json:"-"` // "" is the identity's key
}

// check rejects what contradicts itself.
func (p *TemplatePatch) check(f *fields) {
	if p.Version > 0 && p.Label != "" {
		f.fault("label", "cannot be combined with version; give one of them")
	}
	if _, twice := jsonscan.Lookup(p.ModelParameters, "response_format"); twice && p.ResponseFormat != nil {
		f.fault("response_format", "is in model_parameters as well; give one of them")
	}
	f.labels("release_labels", p.Labels)
}

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
	rest := *t
	rest.Metadata, rest.Blueprint, rest.LLMKwargs = nil, nil, nil
	// Numbers, texts and lists always encode.
	text, _ := jsonscan.Marshal(rest)

	// No text contains this: its quotes would be escaped.
	before, after, _ := bytes.Cut(text, []byte(`"metadata":null,"prompt_template":null,"llm_kwargs":null`))
	b = append(b, before...)
	b = appendRaw(append(b, `"metadata":`...), t.Metadata)
	b = appendRaw(append(b, `,"prompt_template":`...), t.Blueprint)
	b = appendRaw(append(b, `,"llm_kwargs":`...), t.LLMKwargs)

	return append(b, after...)
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
