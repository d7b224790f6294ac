package calls

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ExcerptBytesMax bounds each of a call's excerpts.
const ExcerptBytesMax = 200

// Excerpts returns what a list shows of the call's texts. in is the first line of the last
// user message. out is the first line of the error if the call failed, otherwise of the
// answer. Neither keeps the body in memory.
func (c *Call) Excerpts() (in, out string) {
	return c.inputExcerpt(), c.outputExcerpt()
}

// inputExcerpt skips messages without text, such as pictures. A call without any message
// of a user shows the last message that it has.
func (c *Call) inputExcerpt() string {
	last := ""
	for i := len(c.Input) - 1; i >= 0; i-- {
		line := c.Input[i].firstLine()
		if line != "" && c.Input[i].Role == "user" {
			return line
		}
		last = cmp.Or(last, line)
	}

	return last
}

// outputExcerpt returns a tool call where the answer has no text.
func (c *Call) outputExcerpt() string {
	if c.Failure != nil {
		if line := cmp.Or(firstLine(c.Failure.Message), firstLine(c.Failure.Type)); line != "" {
			return line
		}
	}

	for i := range c.Output {
		if line := c.Output[i].firstLine(); line != "" {
			return line
		}
	}
	for i := range c.Output {
		for _, call := range c.Output[i].ToolCalls {
			// Cut before they are joined: arguments may be long.
			return firstLine(call.Name + " " + firstLine(call.Arguments))
		}
	}

	return ""
}

// firstLine returns the first line of the message's text. The thoughts before an answer
// count only if there is nothing else.
func (m *Message) firstLine() string {
	thought := ""
	for _, p := range m.Parts {
		switch p.Kind {
		case PartText, PartRefusal:
			if line := firstLine(p.Text); line != "" {
				return line
			}
		case PartThinking:
			if thought == "" {
				thought = firstLine(p.Text)
			}
		}
	}

	return thought
}

// firstLine returns the first line with a letter or digit, and without one the first that
// is not blank: a lone "{" or "```" tells nothing. It returns a copy of at most
// ExcerptBytesMax, cut between two characters.
func firstLine(text string) string {
	first := ""
	for {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
		if text == "" {
			return first
		}

		// Cut before the end of the line is searched: most texts are one long line.
		line := cut(text)
		if end := strings.IndexAny(line, lineEnds); end >= 0 {
			line = line[:end]
		}
		line = strings.TrimRightFunc(line, unicode.IsSpace)
		if strings.ContainsFunc(line, isWord) {
			return strings.Clone(line)
		}
		first = cmp.Or(first, strings.Clone(line))

		end := strings.IndexAny(text, lineEnds)
		if end < 0 {
			return first
		}
		text = text[end:]
	}
}

const lineEnds = "\n\r"

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// cut returns the beginning of a text, at most ExcerptBytesMax.
func cut(text string) string {
	if len(text) <= ExcerptBytesMax {
		return text
	}
	end := ExcerptBytesMax
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}

	return text[:end]
}
