package calls

import (
	"context"
	"encoding/json"
	"math"
	"strconv"

	"promptspool/api/wire"
)

// readLogRequest reads a call that its caller has put into blueprints. Its counts are the
// caller's own.
func readLogRequest(member func(string) node) Call {
	output := member("output")
	call := Call{
		Input:        readBlueprint(member("input"), "user"),
		Output:       readBlueprint(output, "assistant"),
		Model:        Clip(member("model").text()),
		FinishReason: Clip(member("finish_reason").text()),
		Failure:      newFailure(member, nil),
	}
	call.Status = status(member, call.Failure)
	if output.reading.tooMany() {
		call.Output, call.TooLong = nil, true
	}
	// A call that failed may have an output without messages.
	call.Readable = len(call.Output) > 0 || !call.TooLong && output.isObject() && failed(member)
	if !call.Readable {
		call.keepRaw(output)
	}

	// The contract's default for each count is 0, so a client that fills in defaults does
	// not know them.
	in, out := member("input_tokens").count(), member("output_tokens").count()
	if in != nil && out != nil && *in+*out > 0 {
		call.Usage = Usage{Input: in, Output: out}
	}

	return call
}

// LogDetails is what a log-request says under other names than a track-request.
type LogDetails struct {
	Provider string
	Price    json.RawMessage
	Prompt   wire.PromptLink // without InputVariables
}

// ReadLogDetails reads the details of a log-request. Members that cannot be read are
// missing.
func ReadLogDetails(object wire.Object) LogDetails {
	member := membersOf(context.Background(), object)
	details := LogDetails{
		Provider: Clip(member("provider").text()),
		Price:    member("price").raw,
		Prompt: wire.PromptLink{
			Name:  Clip(member("prompt_name").text()),
			Label: Clip(member("prompt_label").text()),
		},
	}
	// A link names a template by its name or by its id in decimal digits.
	if id := member("prompt_id").count(); details.Prompt.Name == "" && id != nil {
		details.Prompt.Name = strconv.FormatInt(*id, 10)
	}
	if v := member("prompt_version_number").count(); v != nil && *v <= math.MaxInt32 {
		details.Prompt.Version = int(*v)
	}

	return details
}

// readBlueprint reads a blueprint: a chat's messages, or a completion's content.
func readBlueprint(n node, usual string) []Message {
	// A completion has no messages: its content is one, of the usual role.
	messages := n.at("messages")
	if !messages.isArray() {
		m := Message{Role: usual}
		m.content(n.at("content"))
		if m.empty() {
			return nil
		}
		return []Message{m}
	}

	return readEach(messages, readMessage, usual)
}
