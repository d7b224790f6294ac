// Package provider makes the arguments of a model call (llm_kwargs) from a filled prompt,
// one file for each provider's own client. It is pure; a prompt that a provider cannot
// express is rejected with the path of what does not fit.
package provider

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"promptspool/api/wire"
	"promptspool/registry/render/language"
	"promptspool/registry/render/prompt"
	"promptspool/registry/render/rawjson"
)

// builders make the arguments of each provider's own client, but for the parameters. These win over
// what was built; a builder that puts them elsewhere leaves none. The keys are what "provider"
// says in a request or in metadata.model.
var builders = map[string]func(*call) wire.Object{
	"openai":            openAI,
	"openai.azure":      openAI, // the same client library, made for another endpoint
	"anthropic":         anthropic,
	"anthropic.bedrock": anthropic,
	"google":            google,
	"vertexai":          google,
	"mistral":           mistral,
	"amazon.bedrock":    bedrock,
	"cohere":            cohere,
}

// Known reports whether llm_kwargs can be made for a provider.
func Known(provider string) bool { return builders[provider] != nil }

// Names lists the known providers, sorted.
func Names() []string { return slices.Sorted(maps.Keys(builders)) }

// family returns what providers with the same models and parameters have in common.
func family(provider, model string) string {
	switch provider {
	case "openai.azure":
		return "openai"
	case "anthropic.bedrock":
		return "anthropic"
	case "google", "vertexai":
		// Vertex AI has Claude as well, which takes Anthropic's arguments.
		if strings.HasPrefix(model, "claude") {
			return "anthropic"
		}
		return "google"
	}

	return provider
}

// Kwargs makes the arguments of a provider's client from a filled prompt. model, if not
// "", and overrides win over what m says. The strings are warnings.
func Kwargs(
	provider string, m Model, p *prompt.Prompt, model string, overrides map[string]json.RawMessage,
) (json.RawMessage, []string, error) {
	build, ok := builders[provider]
	if !ok {
		return nil, nil, wire.Invalid(wire.FieldError{
			Field: "provider",
			Reason: fmt.Sprintf("%q is not one that this version makes llm_kwargs for; it knows %s",
				language.Shorten(provider), strings.Join(Names(), ", ")),
		})
	}
	// Sorted, so that the same call gives the same bytes.
	names := slices.Sorted(maps.Keys(overrides))
	for _, name := range names {
		if at := Redirecting(name, overrides[name]); at != "" {
			return nil, nil, cannotExpress("model_parameter_overrides."+at, RedirectsClient)
		}
	}

	c := call{Prompt: *p, provider: provider}
	c.settle(m, model)
	for _, name := range names {
		c.parameters = rawjson.Set(c.parameters, name, overrides[name])
	}
	// Overrides may be spelled for another provider, too.
	c.parameters, _ = spell(c.api(), c.parameters, false)
	// A parameter must not win over the model that the caller asked for.
	if model != "" {
		c.parameters = rawjson.Without(rawjson.Without(c.parameters, "model"), "modelId")
	}

	// Only OpenAI still takes functions, the older form of tools.
	if c.family != "openai" || NormalAPI(provider, c.apiType) != chatAPI {
		c.useTools()
	}
	for b := range p.Blocks {
		if b.IsUnfilled() {
			c.warn("%s was left out: its variable %s was not given.", prompt.Place(b.At), language.Shorten(b.Variable))
		}
	}
	kwargs := build(&c)
	if c.err != nil {
		return nil, nil, c.err
	}

	return rawjson.Encode(rawjson.Merge(kwargs, c.parameters)), c.warnings, nil
}

// settle decides on the model and takes over the published parameters.
//
// If they were published for another provider's models, that model is left out, and so
// are parameters that the provider does not have. wanted is the model that the caller
// asked for, or "".
func (c *call) settle(m Model, wanted string) {
	c.model, c.apiType, c.parameters = m.Name, m.APIType, slices.Clone(m.Parameters)
	if wanted != "" {
		c.model = wanted
	}
	c.family = family(c.provider, c.model)

	// Vertex AI has Claude, but the Gemini API does not.
	noClaude := c.provider == "google" && family(m.Provider, "") == "anthropic" && wanted == ""
	if m.Provider == "" || family(m.Provider, m.Name) == c.family && !noClaude {
		return
	}

	// One provider's api_type means nothing to another.
	c.apiType = ""
	if wanted == "" {
		c.model, c.family = "", family(c.provider, "")
		if m.Name != "" {
			c.warn("The model %s is %s's, and is left out; give one of %s's as model.",
				language.Shorten(m.Name), language.Shorten(m.Provider), c.provider)
		}
	}

	var left []string
	c.parameters, left = spell(c.api(), c.parameters, true)
	if len(left) > 0 {
		c.warn("These parameters are %s's, and are left out: %s.",
			language.Shorten(m.Provider), language.Shorten(strings.Join(left, ", ")))
	}
}

// api returns whose spelling of parameters applies.
func (c *call) api() string {
	switch {
	case c.family == "openai" && c.apiType == "responses":
		return "responses"
	case c.family == "openai" && !c.Chat:
		return "text"
	}

	return c.family
}

// call is what a provider's arguments are made from. It belongs to one call of Kwargs.
// The prompt in it is shared and must not be changed, but its slices may be replaced.
type call struct {
	prompt.Prompt
	provider   string
	family     string // see family
	model      string // "" if none is known
	apiType    string
	parameters wire.Object // of the metadata, then the request's overrides
	warnings   []string
	err        error // the first; nothing that is made after it is of use
}

// cannotExpress returns the 422 for what a provider's client has no place for.
func cannotExpress(path, format string, args ...any) error {
	return wire.Invalid(wire.FieldError{Field: path, Reason: fmt.Sprintf(format, args...)})
}

// reject notes the error of cannotExpress, unless there is one. It returns nothing in place of a value.
func (c *call) reject(path, format string, args ...any) json.RawMessage {
	if c.err == nil {
		c.err = cannotExpress(path, format, args...)
	}
	return nil
}

// cannotHold rejects a block that has no place in something.
func (c *call) cannotHold(b *prompt.Block, format string, args ...any) json.RawMessage {
	return c.reject(b.At, "is %q, which %s cannot hold in %s",
		language.Shorten(b.Kind), c.provider, fmt.Sprintf(format, args...))
}

func (c *call) warn(format string, args ...any) {
	if len(c.warnings) < language.FaultsMax {
		c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
	}
}

// warnName warns that the name of a message was left out.
func (c *call) warnName(m *prompt.Message) {
	c.warn("The name of %s was left out: %s has no place for it.", prompt.Place(m.At), c.provider)
}

// newKwargs begins the arguments with the model's name, if one is known.
func (c *call) newKwargs(member string) wire.Object {
	kwargs := make(wire.Object, 0, 8+len(c.parameters))
	if c.model != "" {
		kwargs = append(kwargs, rawjson.MemberOf(member, rawjson.Quote(c.model)))
	}

	return kwargs
}

// completionText joins the text blocks of a completion.
func (c *call) completionText() string { return c.joinedText(c.Content, "a completion") }

// messageText joins the text blocks of a message.
func (c *call) messageText(m *prompt.Message) string {
	return c.joinedText(m.Content, "a message of the role "+m.Role)
}

func (c *call) joinedText(blocks []prompt.Block, where string) string {
	if len(blocks) == 1 && blocks[0].Kind == "text" {
		return blocks[0].Text
	}

	var b strings.Builder
	for i := range blocks {
		// Images that the caller did not give are left out here as in a chat.
		if blocks[i].IsUnfilled() {
			continue
		}
		if blocks[i].Kind != "text" {
			c.cannotHold(&blocks[i], "%s, which takes text only", where)
		}
		b.WriteString(blocks[i].Text)
	}

	return b.String()
}

// useTools turns the older functions into tools: functions, function_call, and messages
// of the role function.
func (c *call) useTools() {
	// The cap makes append copy: the prompt is shared.
	c.Tools = append(c.Tools[:len(c.Tools):len(c.Tools)], c.Functions...)
	if c.Choice.Raw == nil {
		c.Choice = c.Call
	}
	if !c.hasFunctionMessages() {
		return
	}

	// Tools answer by the id of a call, functions by name: the last call of a name is
	// meant.
	messages := make([]prompt.Message, len(c.Messages))
	ids := make(map[string]string)
	for i, m := range c.Messages {
		if call := m.FunctionCall; call != nil {
			id := fmt.Sprintf("call_%d", i)
			ids[call.Name] = id
			m.Calls = append(m.Calls[:len(m.Calls):len(m.Calls)], prompt.ToolCall{
				ID:        id,
				Name:      call.Name,
				Arguments: call.Arguments,
			})
			m.FunctionCall = nil
		}
		if m.Role == "function" {
			id, ok := ids[m.Name]
			if !ok {
				c.reject(m.At,
					"gives the result of %q, which no message before it called; %s needs the call as well",
					language.Shorten(m.Name), c.provider)
			}
			m.Role, m.ToolCallID = "tool", id
		}
		messages[i] = m
	}
	c.Messages = messages
}

func (c *call) hasFunctionMessages() bool {
	return slices.ContainsFunc(c.Messages, func(m prompt.Message) bool {
		return m.FunctionCall != nil || m.Role == "function"
	})
}

// Model is metadata.model.
type Model struct {
	Provider, Name, APIType string
	Parameters              wire.Object
}

// ParseModel reads what it can. Publishing a version has checked the rest.
func ParseModel(metadata json.RawMessage) Model {
	m := rawjson.Member(metadata, "model")

	return Model{
		Provider:   rawjson.Text(rawjson.Member(m, "provider")),
		Name:       rawjson.Text(rawjson.Member(m, "name")),
		APIType:    rawjson.Text(rawjson.Member(m, "api_type")),
		Parameters: rawjson.Object(rawjson.Member(m, "parameters")),
	}
}

// chatAPI is the api_type of OpenAI's chat completions, and of its older completions, as
// clients of the peer spell it.
const chatAPI = "chat-completions"

// NormalAPI spells an api_type as clients expect it: they derive the name of a function
// from it. Only OpenAI's are normalised.
func NormalAPI(provider, apiType string) string {
	if family(provider, "") != "openai" {
		return apiType
	}

	switch apiType {
	case "", "chat.completions", "chat_completions", "completions":
		return chatAPI
	}

	return apiType
}

// Settle returns the model and the parameters that Kwargs would use. model is the one
// that the caller asked for, or "".
func Settle(provider string, p *prompt.Prompt, m Model, model string) Model {
	c := call{Prompt: *p, provider: provider}
	c.settle(m, model)
	return Model{Provider: provider, Name: c.model, APIType: c.apiType, Parameters: c.parameters}
}

// RedirectsClient is the reason why a parameter that Redirecting finds is rejected.
const RedirectsClient = "would redirect or authenticate the app's client; " +
	"set it where the app makes its client"

// clientParameters lists arguments of the known clients that are about the connection,
// not about the model, in lower case without _ and -.
var clientParameters = setOf(`
	apibase apikey apitype apiversion authorization authtoken azureadtoken azureadtokenprovider
	azuredeployment azureendpoint baseurl bearertoken client clientoptions credentials
	dangerouslyallowbrowser defaultheaders defaultquery endpoint endpointurl headers httpclient
	httpheaders httpoptions organization project proxies proxy serverurl token transport
	websocketbaseurl`)

func setOf(words string) map[string]bool {
	set := make(map[string]bool)
	for _, word := range strings.Fields(words) {
		set[word] = true
	}

	return set
}

var withoutSeparators = strings.NewReplacer("_", "", "-", "")

// Redirecting returns the path of what, in a parameter, would redirect or authenticate
// the app's client; "" if nothing does. It also looks into objects that clients take as a
// whole configuration.
func Redirecting(parameter string, value json.RawMessage) (path string) {
	name := withoutSeparators.Replace(strings.ToLower(parameter))
	// extra_headers, extra_body and the like go into the request as they
	// are; aws_* are credentials and endpoints.
	if clientParameters[name] || strings.HasSuffix(name, "apikey") ||
		strings.HasPrefix(name, "extra") || strings.HasPrefix(name, "aws") {
		return parameter
	}

	switch name {
	case "config", "generationconfig", "requestoptions", "options":
		for _, m := range rawjson.Object(value) {
			if at := Redirecting(m.Name, m.Value); at != "" {
				return parameter + "." + at
			}
		}
	}

	return ""
}

// spelling is how each family of APIs spells the parameters, if it does so in its own way; of two ways, the
// preferred one comes first. A family lacks the parameters that are missing here. The APIs responses and text
// are OpenAI's.
var spelling = spellings(`
	openai          max_tokens=max_completion_tokens,max_tokens stop top_p seed temperature
	responses       max_tokens=max_output_tokens top_p temperature
	text            max_tokens stop top_p seed temperature
	anthropic       max_tokens=max_tokens,max_tokens_to_sample stop=stop_sequences top_p top_k temperature
	google          max_tokens=max_output_tokens,maxOutputTokens stop=stop_sequences,stopSequences
	google          top_p=top_p,topP top_k=top_k,topK seed temperature
	mistral         max_tokens stop top_p seed=random_seed temperature
	amazon.bedrock  max_tokens=maxTokens stop=stopSequences top_p=topP top_k temperature
	cohere          max_tokens stop=stop_sequences top_p=p top_k=k seed temperature`)

// canonical is the meaning of each name that an API has for a parameter.
var canonical = map[string]string{}

// spellings reads the table of spelling, and fills canonical.
func spellings(table string) map[string]map[string][]string {
	all := map[string]map[string][]string{}
	for line := range strings.Lines(strings.TrimSpace(table)) {
		fields := strings.Fields(line)
		api := fields[0]
		if all[api] == nil {
			all[api] = map[string][]string{}
		}
		for _, field := range fields[1:] {
			meaning, names, _ := strings.Cut(field, "=")
			all[api][meaning] = strings.Split(cmp.Or(names, meaning), ",")
			for _, name := range all[api][meaning] {
				canonical[name] = meaning
			}
		}
	}

	return all
}

// spell rewrites parameters in the spelling of an API: {"maxOutputTokens": 5} becomes
// {"max_completion_tokens": 5} for OpenAI.
//
// If foreign is set, the parameters were published for another family of models. Then
// only those are kept that the providers have in common; left names the others.
func spell(api string, parameters wire.Object, foreign bool) (spelt wire.Object, left []string) {
	spelt = make(wire.Object, 0, len(parameters))
	for _, p := range parameters {
		// A parameter that no family shares has no meaning here; it stays, unless it is
		// foreign.
		meaning := canonical[p.Name]
		accepted := spelling[api][meaning]
		switch {
		case slices.Contains(accepted, p.Name):
		case len(accepted) > 0:
			p.Name = accepted[0]
		case foreign:
			left = append(left, p.Name)
			continue
		}

		// Only OpenAI and Mistral, whose parameter is called stop, take a single string.
		isString := len(p.Value) > 0 && p.Value[0] == '"'
		if meaning == "stop" && p.Name != "stop" && isString {
			p.Value = rawjson.Array([]json.RawMessage{p.Value})
		}
		spelt = rawjson.Set(spelt, p.Name, p.Value)
	}

	return spelt, left
}
