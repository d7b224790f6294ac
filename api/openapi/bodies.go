package openapi

import (
	"slices"

	"github.com/invopop/jsonschema"

	"promptspool/api/wire"
)

// The types below are bodies that package api reads member by member, and answers that it
// does not export. The comments on types and fields are the texts of the description.

// WithKey is in the bodies that apps send.
type WithKey struct {
	// The key, if it is not in the header.
	APIKey string `json:"api_key,omitempty"`
}

// Placed is in the bodies of calls: whose call it was, and where it is in a trace.
type Placed struct {
	// The session or conversation of the call. It is kept as metadata, as are the two below,
	// and takes precedence over metadata of the same name.
	SessionID any `json:"session_id,omitempty" jsonschema:"anyof_type=string;integer"`
	// The user that the call was made for.
	UserID any `json:"user_id,omitempty" jsonschema:"anyof_type=string;integer"`
	// Where the app runs, such as production.
	Environment any `json:"environment,omitempty" jsonschema:"anyof_type=string;integer"`
	// The trace of the call: 32 hexadecimal digits. Zeros mean none, here and below.
	TraceID string `json:"trace_id,omitempty"`
	// The call's span in that trace: 16 hexadecimal digits. The call of a span with these ids is
	// the same one.
	SpanID string `json:"span_id,omitempty"`
	// The span that the call is a step of: 16 hexadecimal digits.
	ParentSpanID string `json:"parent_span_id,omitempty"`
	// Milliseconds from the start of the call to its first token.
	FirstTokenMS *float64 `json:"time_to_first_token_ms,omitempty" jsonschema:"minimum=0,maximum=86400000"`
}

// TrackRequest is a call to a model, as the provider's client made it.
type TrackRequest struct {
	open
	WithKey
	// The function that was called, such as openai.ChatCompletion.create; it tells how to
	// read the response.
	FunctionName string `json:"function_name" jsonschema:"minLength=1,maxLength=1024"`
	// The provider, if function_name does not begin with it.
	ProviderType string `json:"provider_type,omitempty" jsonschema:"maxLength=512"`
	// The arguments of the call: model, messages or prompt, and so on.
	Kwargs map[string]any `json:"kwargs"`
	// Positional arguments of the call.
	Args any `json:"args,omitempty"`
	// The provider's response, as it came. The chunks of a stream go to /track-request.
	Response map[string]any `json:"request_response"`
	// When the call began: seconds since 1970, or an ISO 8601 time, in UTC if it names no zone. A number
	// that makes sense only as milliseconds, microseconds or nanoseconds is read as such.
	Start any `json:"request_start_time" jsonschema:"anyof_type=number;string"`
	// When the call ended.
	End any `json:"request_end_time" jsonschema:"anyof_type=number;string"`
	// Words to find the call by. More than 256 are dropped.
	Tags []string `json:"tags,omitempty"`
	// Values to find the call by, such as user_id and session_id. A value that is not a string
	// is kept as its JSON.
	Metadata map[string]any `json:"metadata,omitempty"`
	Placed
	// The template that the call was made with: its name or its id.
	PromptID any `json:"prompt_id,omitempty" jsonschema:"anyof_type=string;integer"`
	// The template's version; without it and a label, the latest.
	PromptVersion any `json:"prompt_version,omitempty" jsonschema:"anyof_type=integer;string"`
	// The label that the template was fetched by; it wins over the version.
	PromptLabel string `json:"prompt_label,omitempty" jsonschema:"maxLength=512"`
	// The values of the template's variables.
	PromptInputVariables map[string]any `json:"prompt_input_variables,omitempty"`
	// The group that the call belongs to.
	GroupID any `json:"group_id,omitempty" jsonschema:"anyof_type=string;integer"`
	// If it is left out, ERROR if an error is named or the response holds one, otherwise SUCCESS.
	Status string `json:"status,omitempty" jsonschema:"enum=SUCCESS,enum=WARNING,enum=ERROR"`
	// The kind of error.
	ErrorType string `json:"error_type,omitempty"`
	// The error's message.
	ErrorMessage string `json:"error_message,omitempty"`
	// An id of your own, a UUIDv7: the same id again is the same call.
	RequestID string `json:"request_id,omitempty" jsonschema:"format=uuid"`
	// If true, the answer has the call as a blueprint, which can be published as a
	// template.
	ReturnBlueprint any `json:"return_prompt_blueprint,omitempty"`
}

// TrackAnyRequest is the same, with anything as its response.
type TrackAnyRequest struct {
	TrackRequest
	// The provider's response, as it came: an object, a text, or the list of a stream's
	// chunks, which are joined to one answer. The streams of OpenAI (chat and responses),
	// Anthropic, Gemini and Bedrock Converse are known.
	Response any `json:"request_response"`
}

// LogRequest is a call to a model of any provider, as blueprints of what went in and what
// came out.
type LogRequest struct {
	open
	WithKey
	// The provider's name, such as openai.
	Provider string `json:"provider" jsonschema:"minLength=1,maxLength=512"`
	// The model's name.
	Model string `json:"model" jsonschema:"minLength=1,maxLength=512"`
	// The prompt that was sent to the model.
	Input Blueprint `json:"input"`
	// The model's response.
	Output Blueprint `json:"output"`
	// When the call began: seconds since 1970, or an ISO 8601 time, in UTC if it names no zone. A number
	// that makes sense only as milliseconds, microseconds or nanoseconds is read as such.
	Start any `json:"request_start_time" jsonschema:"anyof_type=number;string"`
	// When the call ended.
	End any `json:"request_end_time" jsonschema:"anyof_type=number;string"`
	// The function that was called.
	FunctionName string `json:"function_name,omitempty" jsonschema:"maxLength=1024"`
	// Which of the provider's APIs was called.
	APIType string `json:"api_type,omitempty" jsonschema:"maxLength=512"`
	// The parameters of the call, such as temperature.
	Parameters map[string]any `json:"parameters,omitempty"`
	// Tokens that were sent.
	InputTokens *int64 `json:"input_tokens,omitempty" jsonschema:"minimum=0"`
	// Tokens that came back.
	OutputTokens *int64 `json:"output_tokens,omitempty" jsonschema:"minimum=0"`
	// The cost of the call in US dollars; computed if it is left out.
	Price *float64 `json:"price,omitempty" jsonschema:"minimum=0,maximum=1000000"`
	// A score.
	Score *int `json:"score,omitempty" jsonschema:"minimum=0,maximum=100"`
	// The score's name; "default" if it is left out.
	ScoreName string `json:"score_name,omitempty" jsonschema:"maxLength=512"`
	// Words to find the call by. More than 256 are dropped.
	Tags []string `json:"tags,omitempty"`
	// Values to find the call by. A value that is not a string is kept as its JSON.
	Metadata map[string]any `json:"metadata,omitempty"`
	Placed
	// The name of the template that the call was made with.
	PromptName string `json:"prompt_name,omitempty" jsonschema:"maxLength=512"`
	// The template's id, if its name is left out.
	PromptID any `json:"prompt_id,omitempty" jsonschema:"anyof_type=string;integer"`
	// The template's version; without it and a label, the latest.
	PromptVersion any `json:"prompt_version_number,omitempty" jsonschema:"anyof_type=integer;string"`
	// The label that the template was fetched by.
	PromptLabel string `json:"prompt_label,omitempty" jsonschema:"maxLength=512"`
	// The values of the template's variables.
	PromptInputVariables map[string]any `json:"prompt_input_variables,omitempty"`
	// The group that the call belongs to.
	GroupID any `json:"group_id,omitempty" jsonschema:"anyof_type=string;integer"`
	// If it is left out, ERROR if an error is named, otherwise SUCCESS.
	Status string `json:"status,omitempty" jsonschema:"enum=SUCCESS,enum=WARNING,enum=ERROR"`
	// The kind of error, such as PROVIDER_TIMEOUT.
	ErrorType string `json:"error_type,omitempty"`
	// The error's message.
	ErrorMessage string `json:"error_message,omitempty" jsonschema:"maxLength=1024"`
	// An id of your own, a UUIDv7: the same id again is the same call.
	RequestID string `json:"request_id,omitempty" jsonschema:"format=uuid"`
}

// OfRequest names the call that a write is about.
type OfRequest struct {
	WithKey
	// The id that the logging of the call was answered with.
	RequestID string `json:"request_id" jsonschema:"format=uuid"`
}

// TrackScore is a score of a call, a span, a trace or a session.
type TrackScore struct {
	open
	WithKey
	// The call: the id that its logging was answered with. It, a trace or a session is required, and
	// one alone.
	RequestID string `json:"request_id,omitempty" jsonschema:"format=uuid"`
	// The trace, or that of the span: 32 hexadecimal digits.
	TraceID string `json:"trace_id,omitempty" jsonschema:"minLength=32,maxLength=32"`
	// The span, with its trace: 16 hexadecimal digits.
	SpanID string `json:"span_id,omitempty" jsonschema:"minLength=16,maxLength=16"`
	// The session, as its calls name it.
	SessionID any `json:"session_id,omitempty" jsonschema:"anyof_type=string;integer"`
	// The score, from 0 to 100; it or a value, which counts, is required.
	Score int `json:"score,omitempty" jsonschema:"minimum=0,maximum=100"`
	// The score as any number, true, false or a text of at most 200 characters; null takes it back.
	Value any `json:"value,omitempty" jsonschema:"anyof_type=number;boolean;string;null"`
	// The name of the score; "default" if it is left out.
	Name string `json:"name,omitempty" jsonschema:"maxLength=512"`
	// The person, the code or the model that judged. Each author has one score for each name.
	Author string `json:"author,omitempty" jsonschema:"maxLength=512"`
	// The version of the author, such as that of a model.
	AuthorVersion any `json:"author_version,omitempty" jsonschema:"anyof_type=string;integer"`
	// The kind of author.
	Source string `json:"source,omitempty" jsonschema:"enum=human,enum=code,enum=model"`
	// The reason for the score.
	Reason string `json:"reason,omitempty"`
}

// TrackMetadata is metadata of a call. A key that is there already gets the new value.
type TrackMetadata struct {
	open
	OfRequest
	// Values by their keys. A value that is not a string is kept as its JSON; null counts as
	// absent.
	Metadata map[string]any `json:"metadata"`
}

// TrackPrompt links a call to a template.
type TrackPrompt struct {
	open
	OfRequest
	// The template's name or id.
	PromptName any `json:"prompt_name" jsonschema:"anyof_type=string;integer"`
	// The values of the template's variables.
	PromptInputVariables map[string]any `json:"prompt_input_variables"`
	// The version; without it and a label, the latest.
	Version any `json:"version,omitempty" jsonschema:"anyof_type=integer;string"`
	// The label that the template was fetched by; it wins over the version.
	Label string `json:"label,omitempty" jsonschema:"maxLength=512"`
}

// TrackGroup puts a call into a group.
type TrackGroup struct {
	open
	OfRequest
	// The group's id.
	GroupID any `json:"group_id" jsonschema:"anyof_type=string;integer"`
}

// CreateGroup asks for the id of a new group.
type CreateGroup struct {
	open
	WithKey
}

// Blueprint is what goes to a model or comes from it, in a form that belongs to no
// provider.
type Blueprint struct {
	// Which of the two it is: a chat has messages, a completion has content.
	Type string `json:"type,omitempty" jsonschema:"enum=chat,enum=completion"`
	// The messages of a chat.
	Messages []Message `json:"messages,omitempty"`
	// The content of a completion.
	Content Contents `json:"content,omitempty"`
	// The tools that the model may call.
	Tools []Tool `json:"tools,omitempty"`
	// Which tool the model must call: auto, none, required, or one by its name.
	ToolChoice any `json:"tool_choice,omitempty" jsonschema:"anyof_type=string;object"`
	// Functions, as OpenAI had them before tools.
	Functions []Function `json:"functions,omitempty"`
	// Which function the model must call: auto, none, or one by its name.
	FunctionCall any `json:"function_call,omitempty" jsonschema:"anyof_type=string;object"`
	// How the variables of a completion are written.
	TemplateFormat string `json:"template_format,omitempty" jsonschema:"enum=f-string,enum=jinja2,enum=none"`
	// The names of the variables.
	InputVariables []string `json:"input_variables,omitempty"`
}

// JSONSchemaExtend is called by the reflector.
func (Blueprint) JSONSchemaExtend(s *jsonschema.Schema) { openWithNulls(s) }

// Message is one message of a chat.
type Message struct {
	// Who says it.
	Role messageRole `json:"role"`
	// The text.
	Content Contents `json:"content,omitempty"`
	// How the variables of the message are written.
	TemplateFormat string `json:"template_format,omitempty" jsonschema:"enum=f-string,enum=jinja2,enum=none"`
	// The names of the variables.
	InputVariables []string `json:"input_variables,omitempty"`
	// Who says it, among several of a role; for the role function, the function.
	Name string `json:"name,omitempty"`
	// The tools that the assistant calls.
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
	// The call that a message of the role tool answers.
	ToolCallID string `json:"tool_call_id,omitempty"`
	// The function that the assistant calls, as OpenAI had it before tools.
	FunctionCall *FunctionCall `json:"function_call,omitempty"`
}

// JSONSchemaExtend is called by the reflector.
func (Message) JSONSchemaExtend(s *jsonschema.Schema) { openWithNulls(s) }

// openWithNulls lets an object have more members than are listed, and these be null, as
// SDKs send what they leave out.
func openWithNulls(s *jsonschema.Schema) {
	s.AdditionalProperties = jsonschema.TrueSchema
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		if !slices.Contains(s.Required, p.Key) {
			s.Properties.Set(p.Key, orNull(p.Value))
		}
	}
}

// messageRole has its values in specialSchema.
type messageRole string

// Contents is what is said: content blocks, such as {"type": "text", "text": "Hello"}; or
// one string.
type Contents []ContentBlock

// JSONSchemaExtend is called by the reflector.
func (Contents) JSONSchemaExtend(s *jsonschema.Schema) {
	blocks := &jsonschema.Schema{Type: "array", Items: s.Items}
	s.Type, s.Items = "", nil
	s.AnyOf = []*jsonschema.Schema{blocks, {Type: "string"}}
}

// ContentBlock is a part of what is said.
type ContentBlock struct {
	open
	// Its kind, such as text, image_url or thinking. Other kinds have other members.
	Type string `json:"type,omitempty"`
	// The text of a block of this kind.
	Text string `json:"text,omitempty"`
	// The image of a block of this kind.
	ImageURL *ImageURL `json:"image_url,omitempty"`
}

// ImageURL is an image in a message.
type ImageURL struct {
	open
	// Where it is: an address, or data:.
	URL string `json:"url"`
}

// Tool is a tool that a model may call.
type Tool struct {
	open
	// Its kind: function, or a provider's own, such as web_search.
	Type string `json:"type,omitempty"`
	// The function of a tool of this kind.
	Function *Function `json:"function,omitempty"`
}

// Function is a function that a model may call.
type Function struct {
	open
	// The function's name.
	Name string `json:"name"`
	// A description for the model.
	Description string `json:"description,omitempty"`
	// The JSON schema of its arguments.
	Parameters map[string]any `json:"parameters,omitempty"`
}

// ToolCall is a model's call of a tool.
type ToolCall struct {
	open
	// The call's id.
	ID string `json:"id,omitempty"`
	// Its kind, such as function.
	Type string `json:"type,omitempty"`
	// The function that is called.
	Function *FunctionCall `json:"function,omitempty"`
}

// FunctionCall is a model's call of a function.
type FunctionCall struct {
	open
	// The function's name.
	Name string `json:"name"`
	// The arguments, as JSON in a string.
	Arguments string `json:"arguments"`
}

// FetchTemplate chooses a version of a template, and what it is filled with.
type FetchTemplate struct {
	open
	WithKey
	// The version; without it and a label, the latest.
	Version any `json:"version,omitempty" jsonschema:"anyof_type=integer;string"`
	// The label whose version to fetch; it wins over the version.
	Label string `json:"label,omitempty" jsonschema:"maxLength=512"`
	// The provider that llm_kwargs are made for, such as openai; the template's own if it
	// is left out.
	Provider string `json:"provider,omitempty" jsonschema:"maxLength=512"`
	// The model that llm_kwargs are made for; the template's own if it is left out.
	Model string `json:"model,omitempty" jsonschema:"maxLength=512"`
	// The values of the variables. Without them the placeholders stay.
	InputVariables map[string]any `json:"input_variables,omitempty"`
	// Parameters of the model that replace the template's own.
	Overrides map[string]any `json:"model_parameter_overrides,omitempty"`
	// Whether to leave the placeholders as they are.
	SkipRendering bool `json:"skip_input_variable_rendering,omitempty"`
	// No effect here, where a key belongs to one project; the answer has a warning.
	WorkspaceID any `json:"workspace_id,omitempty" jsonschema:"anyof_type=integer;string"`
	// Accepted for the SDKs of the hosted service, where it chooses among the versions that
	// a label may have. Here a label points to one.
	MetadataFilters map[string]any `json:"metadata_filters,omitempty"`
}

// PublishTemplate is a version of a template, to be published.
type PublishTemplate struct {
	open
	WithKey
	// Which template it is, and its tags.
	Template PublishedName `json:"prompt_template"`
	// The content of the version.
	Version PublishedVersion `json:"prompt_version"`
	// Labels that point to this version from now on.
	Labels []string `json:"release_labels,omitempty"`
	// The template's ids in other systems; as they are if they are left out.
	ExternalIDs []wire.ExternalID `json:"external_ids,omitempty" jsonschema:"maxItems=32"`
}

// PublishedName says which template it is. One that does not exist is made.
type PublishedName struct {
	open
	// The template's name; it may have slashes, for folders.
	Name string `json:"prompt_name" jsonschema:"minLength=1,maxLength=512"`
	// The template's tags; as they are if they are left out.
	Tags []string `json:"tags,omitempty"`
	// No effect here, where the slashes of a name make folders; the answer has a warning.
	FolderID any `json:"folder_id,omitempty" jsonschema:"anyof_type=integer;string"`
	// No effect here, where a key belongs to one project; the answer has a warning.
	WorkspaceID any `json:"workspace_id,omitempty" jsonschema:"anyof_type=integer;string"`
}

// PublishedVersion is what the version holds.
type PublishedVersion struct {
	open
	// The text, as a blueprint.
	Blueprint Blueprint `json:"prompt_template"`
	// The model: {"model": {"provider", "name", "parameters"}}; and whatever else you
	// want to keep.
	Metadata map[string]any `json:"metadata,omitempty"`
	// The change and its reason.
	CommitMessage string `json:"commit_message,omitempty" jsonschema:"maxLength=512"`
}

// PublishTemplateOld is the same in one object, as older clients send it.
type PublishTemplateOld struct {
	open
	WithKey
	// The template's name.
	Name string `json:"prompt_name" jsonschema:"minLength=1,maxLength=512"`
	// The text: a blueprint, or what LangChain serialises.
	Blueprint map[string]any `json:"prompt_template"`
	// The template's tags.
	Tags []string `json:"tags,omitempty"`
	// The model, and whatever else you want to keep.
	Metadata map[string]any `json:"metadata,omitempty"`
	// The change and its reason.
	CommitMessage string `json:"commit_message,omitempty" jsonschema:"maxLength=512"`
	// Labels that point to this version from now on.
	Labels []string `json:"release_labels,omitempty"`
}

// PatchTemplate is what the next version has otherwise than its base.
type PatchTemplate struct {
	open
	WithKey
	// The base: a version; without it and a label, the latest.
	Version any `json:"version,omitempty" jsonschema:"anyof_type=integer;string"`
	// The base: the version that a label points to.
	Label string `json:"label,omitempty" jsonschema:"maxLength=512"`
	// Messages of a chat: an object of index and message replaces these, an array
	// replaces all.
	Messages any `json:"messages,omitempty" jsonschema:"anyof_type=object;array"`
	// Content of a completion, in the same way.
	Content any `json:"content,omitempty" jsonschema:"anyof_type=object;array"`
	// Tools, in the same way; null removes them.
	Tools any `json:"tools,omitempty" jsonschema:"anyof_type=object;array;null"`
	// Functions, in the same way; null removes them.
	Functions any `json:"functions,omitempty" jsonschema:"anyof_type=object;array;null"`
	// Which function the model must call; null removes it.
	FunctionCall any `json:"function_call,omitempty" jsonschema:"anyof_type=string;object;null"`
	// Which tool the model must call; null removes it.
	ToolChoice any `json:"tool_choice,omitempty" jsonschema:"anyof_type=string;object;null"`
	// Parameters of the model, which replace those of the same names.
	ModelParameters map[string]any `json:"model_parameters,omitempty"`
	// The model's response_format; null removes it.
	ResponseFormat any `json:"response_format,omitempty" jsonschema:"anyof_type=object;null"`
	// The change and its reason.
	CommitMessage string `json:"commit_message,omitempty" jsonschema:"maxLength=512"`
	// Labels that point to the new version from now on.
	Labels []string `json:"release_labels,omitempty"`
}

// CreateLabel points a label to a version. A label of this name moves.
type CreateLabel struct {
	open
	WithKey
	// The label, such as prod.
	Name string `json:"name" jsonschema:"minLength=1,maxLength=512"`
	MoveLabel
}

// MoveLabel is the version that a label points to.
type MoveLabel struct {
	open
	// The version.
	Version any `json:"prompt_version_number" jsonschema:"anyof_type=integer;string"`
}

// Empty is a body without its own members.
type Empty struct {
	open
	WithKey
}

// Search chooses records.
type Search struct {
	open
	wire.Search
	Unsearched
}

// Unsearched are fields of the hosted service's search that change nothing here.
type Unsearched struct {
	// Rows have the template's name, whatever is said here.
	IncludePromptName bool `json:"include_prompt_name,omitempty"`
	// No effect here; the answer has a warning.
	MetadataKey string `json:"metadata_cost_breakdown_key,omitempty"`
}

// Continue continues with work that one request did not finish.
type Continue struct {
	open
	// The cursor of the last answer; left out at first.
	Cursor string `json:"cursor,omitempty"`
}

// Scan asks for credentials in stored records.
type Scan struct {
	Continue
	// Whether to mask them.
	Mask bool `json:"mask,omitempty"`
	// How many records to look at. Without it, one request looks at as many as two seconds allow.
	Limit int `json:"limit,omitempty"`
}

// BacktestQuery asks what a template's newest requests would send with another version.
type BacktestQuery struct {
	open
	WithKey
	// The template's name or id.
	Name any `json:"prompt_name" jsonschema:"anyof_type=string;integer"`
	// The version to render with; without it and a label, the latest.
	Version any `json:"version,omitempty" jsonschema:"anyof_type=integer;string"`
	// The label whose version to render with.
	Label string `json:"label,omitempty" jsonschema:"maxLength=512"`
	// Only requests that were sent with this version.
	SentVersion any `json:"sent_version,omitempty" jsonschema:"anyof_type=integer;string"`
	// How many requests; 20 if it is left out.
	Last int `json:"last,omitempty" jsonschema:"minimum=1,maximum=1000"`
	// The provider that llm_kwargs are made for.
	Provider string `json:"provider,omitempty" jsonschema:"maxLength=512"`
	// Only requests that this filter finds.
	Filter *wire.Filter `json:"filter_group,omitempty"`
	wire.FilterLine
}

// OK answers a heartbeat.
type OK struct {
	Success bool `json:"success"`
}

// ExportLine is a line of an export: an event, or now and then, and at the end, a mark.
type ExportLine struct {
	open
	// A cursor that continues after the lines before it. An export without a mark that is
	// done was cut.
	Export *wire.ExportMark `json:"export,omitempty"`
}

// StatisticsQuery chooses the records that are summed up.
type StatisticsQuery struct {
	open
	wire.StatisticsQuery
	Unsorted
}

// PartsQuery chooses the records that are summed up by something, and two versions to compare.
type PartsQuery struct {
	open
	wire.PartsQuery
	Unsorted
}

// Unsorted are what statistics cannot be sorted by.
type Unsorted struct {
	// No effect on sums; the answer has a warning.
	SortBy string `json:"sort_by,omitempty"`
	// No effect on sums; the answer has a warning.
	SortOrder string `json:"sort_order,omitempty"`
}

// Export chooses the records of an export.
type Export struct {
	open
	wire.Search
	Unsearched
	// Events, one a line, or CSV: a line for each record, with the beginning of its texts.
	Format string `json:"format,omitempty" jsonschema:"enum=events,enum=csv,default=events"`
}

// RollupSearch chooses sessions, traces or users.
type RollupSearch struct {
	open
	wire.RollupSearch
}

// SpanSearch chooses spans.
type SpanSearch struct {
	open
	wire.SpanSearch
}

// DefineScore defines the scores of a name.
type DefineScore struct {
	// The name in the path, once more.
	Name string `json:"name,omitempty" jsonschema:"maxLength=512"`
	// The kind of the values. A number may also be sent as score.
	Kind string `json:"kind" jsonschema:"enum=number,enum=boolean,enum=category"`
	// The least number that fits.
	Min *float64 `json:"min,omitempty"`
	// The greatest number that fits.
	Max *float64 `json:"max,omitempty"`
	// The categories that fit; all do if there are none.
	Categories []string `json:"categories,omitempty" jsonschema:"maxItems=50"`
	// The direction that comparisons call better; without it, neither.
	Better string `json:"better,omitempty" jsonschema:"enum=higher,enum=lower"`
	// A text for reviewers.
	Description string `json:"description,omitempty" jsonschema:"maxLength=1000"`
}

// Heartbeat is what a sidecar reports about itself.
type Heartbeat struct {
	open
	wire.Heartbeat
}
