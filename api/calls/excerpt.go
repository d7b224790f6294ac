package calls

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// ExcerptRunesMax bounds each of a call's excerpts, in characters.
	ExcerptRunesMax = 200

	// excerptReadMax bounds the bytes of a text that are read for its excerpt.
	excerptReadMax = 4 << 10
)

// Excerpts returns what a list shows of the call's texts. in is the beginning of the last
// user message. out is that of the error if the call failed, otherwise of the answer.
// Neither keeps the body in memory.
func (c *Call) Excerpts() (in, out string) {
	return c.inputExcerpt(), c.outputExcerpt()
}

// inputExcerpt skips messages without text, such as pictures. A call without any message
// of a user shows the last message that it has.
func (c *Call) inputExcerpt() string {
	last := ""
	for i := len(c.Input) - 1; i >= 0; i-- {
		text := c.Input[i].excerpt()
		if c.Input[i].Role == "user" && text != "" {
			return text
		}
		last = cmp.Or(last, text)
	}

	return last
}

// outputExcerpt returns an error, and what was answered before it.
func (c *Call) outputExcerpt() string {
	answer := c.answerExcerpt()
	if c.Failure == nil {
		return answer
	}

	return Excerpt(cmp.Or(c.Failure.Message, c.Failure.Type), answer)
}

// answerExcerpt returns a tool call where the answer has no text.
func (c *Call) answerExcerpt() string {
	for i := range c.Output {
		if text := c.Output[i].excerpt(); text != "" {
			return text
		}
	}
	for i := range c.Output {
		for _, call := range c.Output[i].ToolCalls {
			return Excerpt(call.Name, call.Arguments)
		}
	}

	return ""
}

// excerpt returns the excerpt of the message's texts. The thoughts before an answer, what the provider's
// tools returned and names of files count only if there is nothing else.
func (m *Message) excerpt() string {
	texts := map[PartKind][]string{}
	for _, p := range m.Parts {
		switch p.Kind {
		case PartRefusal:
			p.Kind = PartText
		case PartMedia:
			p.Kind, p.Text = PartResult, p.Name
		}
		texts[p.Kind] = append(texts[p.Kind], p.Text)
	}

	return cmp.Or(Excerpt(texts[PartText]...), Excerpt(texts[PartThinking]...), Excerpt(texts[PartResult]...))
}

// Excerpt returns the beginning of texts in one line, without Markdown's marks. It is a copy of
// at most ExcerptRunesMax characters.
func Excerpt(texts ...string) string {
	var x excerpt
	for _, text := range texts {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
		if len(text) > excerptReadMax {
			text = strings.ToValidUTF8(text[:excerptReadMax], "")
		}
		for text != "" && x.runes < ExcerptRunesMax {
			line, rest, _ := strings.Cut(text, "\n")
			x.line(afterMarks(line))
			text = rest
		}
	}

	return strings.TrimRight(string(x.out[:x.size]), " ")
}

// afterMarks returns what follows the marks at the beginning of a line: of headings, lists and
// quotations. A fence or a rule has nothing, and the row of a table its cells.
func afterMarks(line string) string {
	line = strings.TrimSpace(line)
	isRule := len(line) > 2 && strings.Trim(line, "-=*_|: ") == ""
	if isRule || strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
		return ""
	}
	if len(line) > 2 && line[0] == '|' && line[len(line)-1] == '|' {
		return strings.ReplaceAll(line, "|", " ")
	}

	for {
		rest := strings.TrimLeft(line, "#")
		if rest == line && line != "" && strings.IndexByte("-*+>", line[0]) >= 0 {
			rest = line[1:]
		}
		if rest == line || rest == "" || rest[0] != ' ' {
			return line
		}
		line = strings.TrimLeft(rest, " ")
	}
}

// excerpt is an excerpt that is being made.
type excerpt struct {
	out   [ExcerptRunesMax * utf8.UTFMax]byte
	size  int // in bytes
	runes int
}

// line adds a line without the marks in it, as far as it fits.
func (x *excerpt) line(line string) {
	x.add(' ')
	// Where the last [ is, which may begin a link.
	link := -1
	skip, closes := 0, 0
	for i, r := range line {
		if x.runes == ExcerptRunesMax {
			return
		}

		switch {
		case i < skip || r == '`':
		case r == '*' && strings.HasPrefix(line[i:], "**"):
			skip = i + len("**")
		case r == '*' && i > 0 && i == closes:
		case r == '*' && emphasis(line, i) > 0:
			closes = emphasis(line, i)
		// A link is its text.
		case r == ']' && link >= 0 && x.out[link+1] != ' ' && isAddress(line[i+1:]):
			copy(x.out[link:], x.out[link+1:x.size])
			x.size--
			x.runes--
			skip, link = i+strings.IndexByte(line[i:], ')')+1, -1
		default:
			x.add(r)
			if r == '[' {
				link = x.size - 1
			}
		}
	}
}

// emphasis returns where the emphasis ends that a * begins; 0 if it begins none, such as in a product.
func emphasis(line string, at int) int {
	end := at + 1 + strings.IndexByte(line[at+1:], '*')
	if end < at+2 || line[at+1] == ' ' || line[end-1] == ' ' {
		return 0
	}
	before, _ := utf8.DecodeLastRuneInString(line[:at])
	after, _ := utf8.DecodeRuneInString(line[end+1:])
	isWord := func(r rune) bool { return r == '*' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	if isWord(before) || isWord(after) {
		return 0
	}

	return end
}

// isAddress reports whether a text begins with the address of a link, in parentheses.
func isAddress(s string) bool { return strings.HasPrefix(s, "(") && strings.Contains(s, ")") }

// add adds a character. White space and control characters become one blank, and none at the
// beginning.
func (x *excerpt) add(r rune) {
	if r <= ' ' || r > unicode.MaxASCII && unicode.IsSpace(r) {
		r = ' '
		if x.size == 0 || x.out[x.size-1] == ' ' {
			return
		}
	}
	x.size += utf8.EncodeRune(x.out[x.size:], r)
	x.runes++
}
