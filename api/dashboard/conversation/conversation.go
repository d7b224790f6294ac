// Package conversation prepares model calls, and the messages of templates, for a page: it folds their
// texts, lays them out, and marks what is looked for.
package conversation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"iter"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"promptspool/api/calls"
	"promptspool/api/dashboard/markup"
	"promptspool/api/words"
)

// Call is a model call as people read it.
type Call struct {
	calls.Call
	Sent calls.Sent
}

// Read reads a model call from any JSON.
func Read(request json.RawMessage) Call {
	return Call{calls.Read(request), calls.ReadSent(request)}
}

// speaks reports whether a message is a speaker's words, which may be Markdown, and not
// what a tool returned.
func speaks(m *calls.Message) bool { return m.Role != "tool" && m.Role != "function" }

// MessageText returns the whole text of a message, for the clipboard.
func MessageText(m *calls.Message) string {
	var all []string
	for _, p := range m.Parts {
		all = append(all, p.Label())
	}
	for _, c := range m.ToolCalls {
		all = append(all, c.Name+"("+c.Arguments+")")
	}

	return strings.Join(all, "\n")
}

// place names a text of a conversation in an address, such as input.3.part.0.
func place(parts ...any) string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = fmt.Sprint(p)
	}

	return strings.Join(names, ".")
}

// Find returns the text at a place, and whether it may be Markdown.
func (c *Call) Find(place string) (text string, prose, ok bool) {
	name, rest, _ := strings.Cut(place, ".")
	number, rest, _ := strings.Cut(rest, ".")
	i, err := strconv.Atoi(number)
	isAt := func(length int) bool { return err == nil && i >= 0 && i < length }

	switch {
	case place == "answer":
		var all []string
		for i := range c.Output {
			all = append(all, MessageText(&c.Output[i]))
		}
		return strings.Join(all, "\n\n"), true, len(all) > 0
	case place == "error" && c.Failure != nil:
		return c.Failure.Message, false, true
	case place == "raw":
		return c.RawText(), false, c.Raw != nil
	case name == "input" && isAt(len(c.Input)):
		return findIn(&c.Input[i], rest)
	case name == "output" && isAt(len(c.Output)):
		return findIn(&c.Output[i], rest)
	case name == "parameter" && isAt(len(c.Sent.Parameters)):
		return c.Sent.Parameters[i].Value, false, true
	case name == "tool" && isAt(len(c.Sent.Tools)):
		return c.Sent.Tools[i].Definition, false, true
	}

	return "", false, false
}

// findIn returns the text at a place in a message.
func findIn(m *calls.Message, place string) (text string, prose, ok bool) {
	kind, number, _ := strings.Cut(place, ".")
	i, err := strconv.Atoi(number)
	switch {
	case place == "":
		return MessageText(m), speaks(m), true
	case err != nil || i < 0:
	case kind == "part" && i < len(m.Parts):
		return m.Parts[i].Text, speaks(m), true
	case kind == "call" && i < len(m.ToolCalls):
		return m.ToolCalls[i].Arguments, false, true
	}

	return "", false, false
}

// Picture returns the image at a place as a data: URL, or "".
func (c *Call) Picture(place string) string {
	var i, j int
	for direction, all := range map[string][]calls.Message{"input": c.Input, "output": c.Output} {
		form := direction + ".%d.part.%d"
		n, _ := fmt.Sscanf(place, form, &i, &j)
		// Sscanf accepts whatever follows.
		if n != 2 || fmt.Sprintf(form, i, j) != place {
			continue
		}
		if i >= 0 && i < len(all) && j >= 0 && j < len(all[i].Parts) {
			return all[i].Parts[j].Image()
		}
	}

	return ""
}

// Message is a message as a page shows it.
type Message struct {
	calls.Message
	Texts  []part
	Tools  []toolCall
	Copy   string // the address of its whole text; "" if it has none
	Folded string // what stands for it until it is opened; "" if it is open
	Hit    bool   // what is folded has what was searched for
}

// foldMessage folds what an app sends with each call, if that is more than a line, and perhaps what
// tools return.
func (t *Texts) foldMessage(m *Message) {
	text := MessageText(&m.Message)
	isLong := (m.Role == "system" || m.Role == "developer") && len(text) > lineBytes
	if t.At != "" && (isLong || t.FoldTools && !speaks(&m.Message)) {
		m.Folded, m.Hit = calls.Excerpt(text), t.countHits(text) > 0
	}
}

// lineBytes bounds a text that fits into a line of a page.
const lineBytes = 80

// part is a part of a message as a page shows it.
type part struct {
	Kind string
	Text
	Image   template.URL // or ""
	Picture string       // the address of the image by itself; "" if it has none
	Link    string       // to media on another host, which the page does not load
}

// part prepares a part of a message for a page.
func (t *Texts) part(at string, p calls.Part, prose bool) part {
	shown := part{Kind: string(p.Kind)}
	// The placeholder of media is short, and is part of a line.
	if p.Kind == calls.PartMedia {
		shown.HTML = template.HTML(template.HTMLEscapeString(p.Label()))
	} else {
		shown.Text = t.Show(at, p.Text, prose && p.Kind != calls.PartResult)
	}

	image := p.Image()
	if image != "" {
		shown.Picture = t.Address(at)
	}
	if len(image) <= t.images {
		// Its reader has checked every byte.
		shown.Image = template.URL(image)
		t.images -= len(image)
	}
	if p.Kind == calls.PartMedia && (strings.HasPrefix(p.Text, "https://") || strings.HasPrefix(p.Text, "http://")) {
		shown.Link = p.Text
	}

	return shown
}

// toolCall is a call of a tool as a page shows it.
type toolCall struct {
	calls.ToolCall
	Text
	Folded string // as in a Message
}

// Messages prepares the messages of the page, and counts those that it has no space for. A message with
// everything in it counts as one.
func (t *Texts) Messages(direction string, all []calls.Message) []Message {
	var out []Message
	aside := 0
	for i, m := range all {
		// The folded messages leave space for those after them, which people look for.
		switch {
		case t.foldTo == 0:
		case i == t.foldFrom:
			aside = min(t.left, afterFoldBytes)
			t.left -= aside
		case i == t.foldTo:
			t.left += aside
		}
		if direction == "input" && t.Only != nil && !slices.Contains(t.Only, i) {
			continue
		}
		first := t.seen
		t.seen += 1 + len(m.Parts) + len(m.ToolCalls)
		if first >= PiecesMax {
			t.hidden++
			continue
		}

		shown := Message{Message: m, Copy: t.Address(place(direction, i))}
		for j, p := range m.Parts {
			if t.onPage(first + 1 + j) {
				shown.Texts = append(shown.Texts, t.part(place(direction, i, "part", j), p, speaks(&m)))
			}
		}
		for j, c := range m.ToolCalls {
			if t.onPage(first + 1 + len(m.Parts) + j) {
				at := place(direction, i, "call", j)
				called := toolCall{ToolCall: c, Text: t.Show(at, c.Arguments, false)}
				if t.FoldTools {
					called.Folded = calls.Excerpt(c.Arguments)
				}
				shown.Tools = append(shown.Tools, called)
			}
		}
		t.foldMessage(&shown)
		out = append(out, shown)
	}

	return out
}

// onPage reports whether the page has space for a piece of a message. One without is counted.
func (t *Texts) onPage(piece int) bool {
	if piece >= PiecesMax {
		t.hidden++
	}

	return piece < PiecesMax
}

// takePiece takes the space of a parameter or a tool, and reports whether there was any.
func (t *Texts) takePiece() bool {
	t.pieces--

	return t.pieces >= 0
}

// Shown is a model call as a page shows it.
type Shown struct {
	Input  []Message
	Output []Message
	Hidden int // messages and parts that the page has no space for

	FoldFrom, FoldTo int // the messages of Input that are folded as one; FoldTo is 0 for none

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
	if t.Fold != nil {
		t.foldFrom, t.foldTo = t.Fold(c.Input)
	}
	v.Input = t.Messages("input", c.Input)
	v.FoldFrom, v.FoldTo = t.foldFrom, min(t.foldTo, len(v.Input))
	v.Hidden = t.hidden - before
	v.TooLong = c.TooLong

	if c.Failure != nil {
		v.Failure = &failure{c.Failure.Type, t.Show("error", c.Failure.Message, false)}
	}
	if c.Raw != nil {
		v.Raw = new(t.Show("raw", c.RawText(), false))
	}

	return v
}

// Folded returns how many messages are folded as one.
func (v Shown) Folded() int { return v.FoldTo - v.FoldFrom }

// Of a conversation of more than openMax messages, the first and the last ones are open.
const (
	openMax   = 12
	openFirst = 2
	openLast  = 4
)

// Middle returns the messages in the middle of a long input.
func Middle(input []calls.Message) (from, to int) {
	if len(input) <= openMax {
		return 0, 0
	}
	return openFirst, len(input) - openLast
}

// Earlier returns the messages before the last one of a user. It returns none for a system prompt alone.
func Earlier(input []calls.Message) (from, to int) {
	for i, m := range slices.Backward(input) {
		if m.Role == "user" && i > 1 {
			return 0, i
		}
	}
	return 0, 0
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

const (
	marksMax    = 500     // in one text, and of each thing that is looked for
	markedMax   = 100     // values that are looked for: the longest
	markedBytes = 4 << 10 // of one such value
)

// needles are what is marked in texts.
type needles struct {
	values []needle // of variables, the longest first
	hits   []words.Sought
}

// needle is the value of a variable.
type needle struct{ Text, Variable string }

// readVariables reads the values of a template's variables from a JSON object, if it is one.
// Values of fewer than two characters would be found everywhere, and very many or very
// long ones would cost more time than their marks are worth.
func readVariables(variables json.RawMessage) (n needles) {
	var byName map[string]json.RawMessage
	_ = json.Unmarshal(variables, &byName)

	for name, raw := range byName {
		value := string(raw)
		// Anything but a string stays JSON.
		_ = json.Unmarshal(raw, &value)
		if len(value) <= markedBytes && utf8.RuneCountInString(value) >= 2 {
			n.values = append(n.values, needle{value, name})
		}
	}

	// The names settle ties, so that the same request always looks the same.
	sort.Slice(n.values, func(i, j int) bool {
		a, b := &n.values[i], &n.values[j]
		return cmp.Or(cmp.Compare(len(b.Text), len(a.Text)), cmp.Compare(a.Variable, b.Variable)) < 0
	})
	n.values = n.values[:min(len(n.values), markedMax)]

	return n
}

// Excerpt returns an excerpt in which what a search looks for is marked.
func Excerpt(text string, sought []words.Sought) template.HTML {
	n := needles{hits: sought}

	return markup.Plain(text, n.marks(text))
}

// marks returns where a text has what is looked for. A hit of the search is marked wherever it is, the
// value of a variable elsewhere: at each place the one that comes first, and then the longest.
func (n *needles) marks(s string) []markup.Mark {
	var all []markup.Mark
	for _, sought := range n.hits {
		all = append(all, marksOf(sought(s), "")...)
	}
	for _, v := range n.values {
		// A value that is all of the text needs no mark: nothing stands out from the whole.
		if v.Text != strings.TrimSpace(s) {
			all = append(all, marksOf(places(s, v.Text), v.Variable)...)
		}
	}
	slices.SortStableFunc(all, func(a, b markup.Mark) int { return a.From - b.From })

	// Marks must not overlap.
	var out []markup.Mark
	for _, m := range all {
		last := len(out) - 1
		switch isHit := m.Variable == ""; {
		case last < 0 || m.From >= out[last].To:
			if len(out) == marksMax {
				return out
			}
			out = append(out, m)
		case isHit && out[last].Variable == "":
			out[last].To = max(out[last].To, m.To)
		case isHit:
			out[last].To = m.From
			out = append(out, m)
		}
	}

	return out
}

// marksOf returns the first marks of one thing that is looked for.
func marksOf(places iter.Seq2[int, int], variable string) (marks []markup.Mark) {
	for start, end := range places {
		if len(marks) == marksMax {
			break
		}
		marks = append(marks, markup.Mark{From: start, To: end, Variable: variable})
	}

	return marks
}

// places yields where a text has a part.
func places(text, part string) iter.Seq2[int, int] {
	return func(yield func(start, end int) bool) {
		for from := 0; ; {
			at := strings.Index(text[from:], part)
			if at < 0 || !yield(from+at, from+at+len(part)) {
				return
			}
			from += at + len(part)
		}
	}
}

// countHits counts how often a text has what the search looks for.
func (n *needles) countHits(s string) (count int) {
	for _, sought := range n.hits {
		for range sought(s) {
			count++
		}
	}

	return count
}
