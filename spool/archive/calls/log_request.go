package calls

import (
	"encoding/json"
	"math"
	"strconv"

	"promptspool/api/wire"
)

// readLogRequest reads a call that its caller has put into blueprints. Its counts are the caller's own.
func readLogRequest(member func(string) node) Call {
	call := Call{Model: Clip(member("model").text()), Readable: true}
	call.Input = readBlueprint(member("input"), "user")
	call.Output = readBlueprint(member("output"), "assistant")
	call.Failure = newFailure(member, nil)
	call.Readable = len(call.Output) > 0 || member("output").isObject() && failed(member)
	if !call.Readable {
		call.raw(member("output"))
	}
	in, out := member("input_tokens").count(), member("output_tokens").count()
	// The contract's default for each count is 0: a client that fills in defaults does not know them.
	if in != nil && out != nil && *in+*out > 0 {
		call.Usage = Usage{Input: in, Output: out}
	}
	call.FinishReason = Clip(member("finish_reason").text())
	return call
}

// LogDetails is what a log-request says under other names than a track-request.
type LogDetails struct {
	Provider string
	Price    json.RawMessage
	Prompt   wire.PromptLink // without InputVariables
}

// ReadLogDetails reads the details of a log-request. What cannot be read is missing.
func ReadLogDetails(object wire.Object) LogDetails {
	member := func(name string) node {
		v, _ := object.Get(name)
		return node(v)
	}

	details := LogDetails{
		Provider: Clip(member("provider").text()),
		Price:    json.RawMessage(member("price")),
		Prompt: wire.PromptLink{
			Name:  Clip(member("prompt_name").text()),
			Label: Clip(member("prompt_label").text()),
		},
	}
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
	messages := n.at("messages")
	if !messages.isArray() {
		m := Message{Role: usual}
		m.content(n.at("content"))
		if m.empty() {
			return nil
		}
		return []Message{m}
	}
	var read []Message
	messages.each(func(e node) {
		if m := readMessage(e, usual); !m.empty() {
			read = append(read, m)
		}
	})
	return read
}
