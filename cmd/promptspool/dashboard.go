package main

import (
	"encoding/json"

	"promptspool/api/dashboard"
	"promptspool/spool/archive/calls"
)

// readCall reads a request for the dashboard.
func readCall(request json.RawMessage) dashboard.Conversation {
	// Here and not in the dashboard, which knows neither the archive nor the providers.
	call := calls.Read(request)
	read := dashboard.Conversation{
		Input:   messages(call.Input),
		Output:  messages(call.Output),
		Raw:     call.RawText(),
		TooLong: call.TooLong,
	}
	if call.Failure != nil {
		read.Failure = &dashboard.Failure{Type: call.Failure.Type, Message: call.Failure.Message}
	}

	sent := calls.ReadSent(request)
	for _, p := range sent.Parameters {
		read.Parameters = append(read.Parameters, dashboard.Parameter(p))
	}
	for _, t := range sent.Tools {
		read.Tools = append(read.Tools, dashboard.Tool(t))
	}

	return read
}

func messages(read []calls.Message) []dashboard.Message {
	var out []dashboard.Message
	for _, m := range read {
		message := dashboard.Message{Role: m.Role, Name: m.Name, Answers: m.ToolCallID}
		for _, p := range m.Parts {
			message.Parts = append(message.Parts, dashboard.Part{Kind: string(p.Kind), Text: p.Text, Image: p.Image()})
		}
		for _, c := range m.ToolCalls {
			message.Calls = append(message.Calls, dashboard.ToolCall(c))
		}
		out = append(out, message)
	}
	return out
}
