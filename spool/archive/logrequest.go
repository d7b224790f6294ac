package archive

import (
	"math"
	"strconv"

	"promptspool/api/wire"
	"promptspool/registry/prices"
)

// readLogRequest reads a call that its caller has put into blueprints. Its counts are the caller's own.
func readLogRequest(member func(string) node) Call {
	call := Call{Model: clip(member("model").text()), Readable: true}
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
	call.FinishReason = clip(member("finish_reason").text())
	return call
}

// logRequest takes what a log-request calls otherwise than a track-request: the provider, the price and the template.
func (r *Request) logRequest(object wire.Object) {
	member := func(name string) node {
		v, _ := object.Get(name)
		return node(v)
	}
	if p := member("provider").text(); p != "" {
		r.Provider = clip(p)
	}
	// A price of 0 is the contract's default, and says nothing.
	if price, err := prices.ParseDollars(string(member("price"))); err == nil && price > 0 {
		r.Price, r.PriceGiven = &price, true
	}
	name := clip(member("prompt_name").text())
	if id := member("prompt_id").count(); name == "" && id != nil {
		name = strconv.FormatInt(*id, 10)
	}
	if name == "" {
		return
	}
	link := Link{Name: name, Label: clip(member("prompt_label").text())}
	if v := member("prompt_version_number").count(); v != nil && *v <= math.MaxInt32 {
		link.Version = int(*v)
	}
	r.Prompt = &link
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
