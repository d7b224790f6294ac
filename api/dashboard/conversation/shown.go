package conversation

import (
	"strings"

	"promptspool/api/calls"
)

// Shown is a model call as a page shows it.
type Shown struct {
	Input   []Message
	Output  []Message
	Hidden  int      // messages and parts that the page has no space for
	Failure *failure // nil if nothing went wrong
	Raw     *Text    // the raw response, if nothing else shows all of it
	TooLong bool     // Raw has too many pieces to be taken apart
}

// Call prepares a model call for a page.
func (t *Texts) Call(c Call) Shown {
	before := t.hidden
	var v Shown

	// The response takes its space first: people look for it before they read the prompt.
	v.Output = t.Messages("output", c.Output)
	v.Input = t.Messages("input", c.Input)
	v.Hidden = t.hidden - before
	v.TooLong = c.TooLong

	if c.Failure != nil {
		v.Failure = &failure{c.Failure.Type, t.Show("error", c.Failure.Message, false)}
	}
	if c.Raw != nil {
		raw := t.Show("raw", c.RawText(), false)
		v.Raw = &raw
	}

	return v
}

// failure is the error of a model call as a page shows it.
type failure struct {
	Type    string
	Message Text
}

// Parameter is an argument of a call as a page shows it.
type Parameter struct {
	Name, Short string // Short is a value that fits into a line
	Text
}

// Tool is a tool that was sent with a call as a page shows it.
type Tool struct {
	calls.Tool
	Text
}

// Sent prepares what a call was sent with beside its messages, as much as the page has space for.
func (t *Texts) Sent(c Call) (parameters []Parameter, tools []Tool) {
	for i, p := range c.Sent.Parameters {
		if !t.takePiece() {
			return parameters, tools
		}
		shown := Parameter{Name: p.Name}
		if len(p.Value) <= shortBytes && !strings.Contains(p.Value, "\n") {
			shown.Short = p.Value
		} else {
			shown.Text = t.Show(place("parameter", i), p.Value, false)
		}
		parameters = append(parameters, shown)
	}

	for i, tool := range c.Sent.Tools {
		if !t.takePiece() {
			break
		}
		tools = append(tools, Tool{tool, t.Show(place("tool", i), tool.Definition, false)})
	}

	return parameters, tools
}

// shortBytes bounds a value that is part of a line.
const shortBytes = 80
