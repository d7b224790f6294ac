package seed

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"promptspool/api/wire"
)

// call is one call of a model.
type call struct {
	start    time.Time
	took     time.Duration
	model    model
	template string
	version  int
	system   string // with its variables filled in
	messages []message
	answer   message
	failure  *failure // nil if it succeeded

	variables map[string]string // of the template
	metadata  map[string]string
	tags      []string
	scores    []wire.Score
	fixed     bool // pinned: neither fails nor gets other times by chance
}

// message is a turn of a conversation.
type message struct {
	role string // user, assistant or tool
	text string
	tool *toolCall // of an assistant, or what a tool answers
	png  string    // a picture, in base64
}

type toolCall struct{ id, name, arguments string }

// failure is how a call failed.
type failure struct {
	kind, message string
	body          map[string]any // what the provider sent, if anything
}

func (c *call) ended() time.Time { return c.start.Add(c.took) }

// body returns the call as a client library logs it.
func (c *call) body() map[string]any {
	body := map[string]any{
		"function_name":          c.model.function,
		"provider_type":          c.model.provider,
		"kwargs":                 c.model.request(c),
		"request_response":       c.model.response(c),
		"request_start_time":     float64(c.start.UnixMilli()) / 1000,
		"request_end_time":       float64(c.ended().UnixMilli()) / 1000,
		"tags":                   c.tags,
		"metadata":               c.metadata,
		"prompt_id":              c.template,
		"prompt_version":         c.version,
		"prompt_input_variables": c.variables,
		"status":                 "SUCCESS",
	}
	if c.failure != nil {
		body["status"], body["error_type"] = "ERROR", c.failure.kind
		body["error_message"] = c.failure.message
	}

	return body
}

// renders makes the call one that was sent with a version of a template: with its text, in which the variables are
// filled in.
func (c *call) renders(t template, version int) {
	text := t.textOf(version)
	c.template, c.version, c.variables = t.name, version, map[string]string{}
	if strings.Contains(text, customerSlot) {
		c.variables["customer"] = c.metadata["customer"]
	}
	for _, m := range c.messages {
		if m.role == "user" {
			c.variables["message"] = m.text // the last one: those before it are the history
		}
	}
	c.system = strings.ReplaceAll(text, customerSlot, c.metadata["customer"])
}

// tokens estimates how many tokens went in and came out.
func (c *call) tokens() (in, out int) {
	in = len(c.system)/4 + 8
	for _, m := range c.messages {
		in += len(m.text)/4 + 4
		if m.png != "" {
			in += 765
		}
	}
	if c.failure == nil {
		out = len(c.answer.text)/4 + 3
		if c.answer.tool != nil {
			out += 24
		}
	}

	return in, out
}

// id returns a UUIDv7 of a time.
func (m *maker) id(at time.Time) string {
	ms := uint64(at.UnixMilli())

	return fmt.Sprintf("%08x-%04x-7%03x-%04x-%012x",
		ms>>16, ms&0xffff, m.Uint32()&0xfff, 0x8000|m.Uint32()&0x3fff, m.Uint64()&0xffffffffffff)
}

// encode encodes what is known to be JSON.
func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("seed: " + err.Error())
	}

	return raw
}
