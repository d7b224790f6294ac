package calls

import (
	"context"
	"encoding/json"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// replyBlueprint is a blueprint of a whole call, as in the peer's reply to a
// track-request. Unknown members are present and empty, because clients look for them.
type replyBlueprint struct {
	Template            replyTemplate     `json:"prompt_template"`
	CommitMessage       *string           `json:"commit_message"`
	Metadata            blueprintMetadata `json:"metadata"`
	ProviderBaseURLName *string           `json:"provider_base_url_name"`
	ReportID            *int64            `json:"report_id"`
	Client              *string           `json:"inference_client_name"`
}

type replyTemplate struct {
	Type           string             `json:"type"`
	Messages       []blueprintMessage `json:"messages"`
	Functions      []json.RawMessage  `json:"functions"`
	Tools          json.RawMessage    `json:"tools"` // as they were sent
	FunctionCall   *string            `json:"function_call"`
	ToolChoice     *string            `json:"tool_choice"`
	InputVariables []string           `json:"input_variables"`
}

// ReplyBlueprint returns the blueprint of a track-request: what went in, then the
// answer. It is nil if body is not an object. It does not alias body, and takes a few
// times its memory.
func ReplyBlueprint(body json.RawMessage) json.RawMessage {
	object, err := wire.ParseObject(body)
	if err != nil {
		return nil
	}

	w, _ := wire.DecodeRequest(object, false) // faulty fields are missing
	call := ReadObject(context.Background(), object)
	b := blueprintOf(&call, Provider(w), object)

	template := replyTemplate{
		Type:           b.Template.Type,
		Messages:       b.Template.Messages,
		Functions:      []json.RawMessage{},
		Tools:          b.Template.Tools,
		InputVariables: []string{},
	}
	for i := range call.Output {
		template.Messages = append(template.Messages, call.Output[i].blueprint())
	}
	// Clients look for a list; a nil RawMessage would be written as null.
	if template.Tools == nil {
		template.Tools = json.RawMessage("[]")
	}

	// It holds JSON that was parsed already, so this cannot fail.
	text, _ := jsonscan.Marshal(replyBlueprint{Template: template, Metadata: b.Metadata})

	return text
}
