package otel

import (
	"cmp"
	"strings"
)

// messageRoles are the events of one message each, and the roles of those.
var messageRoles = map[string]string{
	"gen_ai.system.message": "system", "gen_ai.user.message": "user",
	"gen_ai.assistant.message": "assistant", "gen_ai.tool.message": "tool",
}

// messageEvents reads the span's own events.
func messageEvents(s *span, _, role string) conversation { return eventsOf(s.events, role) }

// eventsOf reads the messages of what went in, or the choices that came out.
func eventsOf(events []event, role string) conversation {
	if role == userRole {
		return inputEvents(events)
	}
	return outputEvents(events)
}

func inputEvents(events []event) conversation {
	var c conversation
	for _, e := range events {
		if role := messageRoles[e.name]; role != "" {
			c.event(e, role)
		}
	}

	return c
}

func outputEvents(events []event) conversation {
	var c conversation
	for _, e := range events {
		if e.name != "gen_ai.choice" {
			continue
		}

		finish := e.at("finish_reason").text()
		switch m := e.at("message").inner(); {
		case m.isObject():
			before := len(c.messages)
			c.event(event{body: m}, "assistant")
			for i := before; i < len(c.finish); i++ {
				c.finish[i] = finish
			}
		case m.isArray():
			b := builder{message: message{Role: "assistant"}}
			b.content(m)
			c.take(&b, finish)
		case m.isText():
			c.add(message{Role: "assistant", Content: m.text()}, finish)
		default:
			c.event(e, "assistant")
		}
	}

	return c
}

// event appends the message that an event holds.
func (c *conversation) event(e event, role string) {
	// Older versions of Semantic Kernel have the whole message as JSON.
	if whole := e.at("gen_ai.event.content").inner(); whole.isObject() {
		if m := whole.at("message"); m.isObject() {
			whole = m
		}
		e = event{body: whole}
	}
	role = cmp.Or(e.at("role").text(), role)
	b := builder{message: message{Role: role, Name: e.at("name").text()}}
	if role == "tool" {
		b.ToolCallID = e.at("id").text()
	}
	b.content(e.at("content"))
	b.calls(e.at("tool_calls"))
	c.take(&b, e.at("finish_reason").text())
}

// contentEvent reads the event that holds everything that went in or came out; key names
// both.
func contentEvent(s *span, key, role string) conversation {
	event, key, _ := strings.Cut(strings.TrimPrefix(key, "event "), ": ")
	return contentOf(s.event(event).at(key), role)
}

// eventList reads the list of events that older versions of Pydantic AI, and Logfire, have in one
// attribute. Those of Gemini have no names.
func eventList(s *span, key, role string) conversation {
	if !strings.HasPrefix(s.scope, "pydantic-ai") && s.own.text("logfire.span_type") == "" {
		return conversation{}
	}

	var events []event
	answered := false
	for _, e := range s.own.get(key).inner().elements() {
		name := e.texts("event.name")
		switch {
		case name == "" && e.has("message"):
			name = "gen_ai.choice"
		case name == "":
			name = "gen_ai." + e.texts("role") + ".message"
		}
		answered = answered || name == "gen_ai.choice"
		events = append(events, event{name: name, body: e})
	}
	// Of OpenAI's responses the answer is a message like those before it.
	for i := len(events) - 1; i >= 0 && !answered && events[i].name == "gen_ai.assistant.message"; i-- {
		events[i].name = "gen_ai.choice"
	}

	return eventsOf(events, role)
}
