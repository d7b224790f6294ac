package openapi

import (
	"slices"

	"github.com/invopop/jsonschema"

	"promptspool/api/wire"
)

// The types below are bodies with what package wire does not read of them, and answers that are not
// exported. The comments on types and fields are the texts of the description.

// TrackAnyRequest is a call to a model, as the provider's client made it, with anything as its response.
type TrackAnyRequest struct {
	wire.RequestWrite
	// The provider's response, as it came: an object, a text, or the list of a stream's
	// chunks, which are joined to one answer. The streams of OpenAI (chat and responses),
	// Anthropic, Gemini and Bedrock Converse are known.
	Response any `json:"request_response"`
}

// RPC is a message of JSON-RPC 2.0, as the Model Context Protocol has it, or the answer to one.
type RPC struct {
	open
	// The version of JSON-RPC: 2.0.
	JSONRPC string `json:"jsonrpc,omitempty"`
	// The same in a message and its answer; a notification has none.
	ID any `json:"id,omitempty" jsonschema:"anyof_type=string;integer"`
	// The method, such as tools/call.
	Method string `json:"method,omitempty"`
	// The arguments of the method.
	Params any `json:"params,omitempty" jsonschema:"type=object"`
	// The answer, also that of a tool whose route refuses the call.
	Result any `json:"result,omitempty" jsonschema:"type=object"`
	// Why there is no answer: an object of JSON-RPC, or the code of an error of this API.
	Error any `json:"error,omitempty"`
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
	wire.TemplateFetch
	// No effect here, where a key belongs to one project; the answer has a warning.
	WorkspaceID any `json:"workspace_id,omitempty" jsonschema:"anyof_type=integer;string"`
	// Accepted for the SDKs of the hosted service, where it chooses among the versions that
	// a label may have. Here a label points to one.
	MetadataFilters map[string]any `json:"metadata_filters,omitempty"`
}

// PublishTemplate is a version of a template, to be published.
type PublishTemplate struct {
	// Which template it is, and its tags.
	Template PublishedName `json:"prompt_template"`
	// The content of the version.
	Version PublishedVersion `json:"prompt_version"`
	wire.PublishedPlace
}

// PublishedName says which template it is. One that does not exist is made.
type PublishedName struct {
	open
	wire.PublishedName
	// No effect here, where the slashes of a name make folders; the answer has a warning.
	FolderID any `json:"folder_id,omitempty" jsonschema:"anyof_type=integer;string"`
	// No effect here, where a key belongs to one project; the answer has a warning.
	WorkspaceID any `json:"workspace_id,omitempty" jsonschema:"anyof_type=integer;string"`
}

// PublishedVersion is what the version holds.
type PublishedVersion struct {
	open
	wire.PublishedVersion
}

// PublishTemplateOld is the same in one object, as older clients send it.
type PublishTemplateOld struct {
	wire.Publish
	// The text: a blueprint, or what LangChain serialises.
	Blueprint map[string]any `json:"prompt_template"`
}

// Empty is a body without its own members.
type Empty struct{}

// Search chooses records.
type Search struct {
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
	wire.StatisticsQuery
	Unsorted
}

// PartsQuery chooses the records that are summed up by something, and two versions to compare.
type PartsQuery struct {
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
	wire.Export
	Unsearched
}
