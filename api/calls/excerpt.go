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
		isUser := c.Input[i].Role == "user"
		if !isUser && last != "" {
			continue
		}

		text := c.Input[i].excerpt()
		if isUser && text != "" {
			return text
		}
		last = cmp.Or(last, text)
	}

	return last
}

// outputExcerpt returns a tool call where the answer has no text.
func (c *Call) outputExcerpt() string {
	if c.Failure != nil {
		if text := cmp.Or(Excerpt(c.Failure.Message), Excerpt(c.Failure.Type)); text != "" {
			return text
		}
	}

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

// excerpt returns the excerpt of the message's texts. The thoughts before an answer count
// only if there is nothing else.
func (m *Message) excerpt() string {
	var texts, thoughts []string
	for _, p := range m.Parts {
		switch p.Kind {
		case PartText, PartRefusal:
			texts = append(texts, p.Text)
		case PartThinking:
			thoughts = append(thoughts, p.Text)
		}
	}

	return cmp.Or(Excerpt(texts...), Excerpt(thoughts...))
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
// quotations. A fence or a rule has nothing.
func afterMarks(line string) string {
	line = strings.TrimSpace(line)
	isRule := len(line) > 2 && strings.Trim(line, "-=*_|: ") == ""
	if isRule || strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
		return ""
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

// line adds a line without the marks in it, as far as it fits. It reads each byte a few times
// at most.
func (x *excerpt) line(line string) {
	x.blank()
	link := -1 // where the last [ is, which may begin a link
	for i := 0; i < len(line) && x.runes < ExcerptRunesMax; {
		if n := plainBytes(line[i:], ExcerptRunesMax-x.runes); n > 0 {
			x.add(line[i:i+n], n)
			i += n
			continue
		}

		r, size := utf8.DecodeRuneInString(line[i:])
		switch {
		case unicode.IsSpace(r):
			x.blank()
		case r == '`':
		case r == '*':
			size = len(line[i:]) - len(strings.TrimLeft(line[i:], "*"))
			// A single one between two words, or by itself, multiplies.
			if size == 1 && isWordAt(line, i-1) == isWordAt(line, i+1) {
				x.add("*", 1)
			}
		case r == ']' && link >= 0 && strings.HasPrefix(line[i:], "]("):
			end := strings.IndexByte(line[i:], ')')
			if end > 0 && link+1 < x.size && x.out[link+1] != ' ' {
				copy(x.out[link:], x.out[link+1:x.size])
				x.size--
				x.runes--
				size = end + 1
			} else {
				x.add("]", 1)
			}
			link = -1
		default:
			x.add(line[i:i+size], 1)
			if r == '[' {
				link = x.size - 1
			}
		}
		i += size
	}
}

// blank adds a blank between two words.
func (x *excerpt) blank() {
	if x.size > 0 && x.out[x.size-1] != ' ' {
		x.add(" ", 1)
	}
}

// add adds a piece of text of so many characters.
func (x *excerpt) add(text string, runes int) {
	x.size += copy(x.out[x.size:], text)
	x.runes += runes
}

// plainBytes returns how many bytes at the beginning of a text, of most that count, are words of
// ASCII without marks, with a blank between them.
func plainBytes(text string, most int) (n int) {
	isPlain := func(i int) bool {
		c := text[i]
		return c > ' ' && c < utf8.RuneSelf && c != '*' && c != '`' && c != '[' && c != ']'
	}
	most = min(most, len(text))
	for n < most && (isPlain(n) || text[n] == ' ' && n > 0 && n+1 < most && isPlain(n+1)) {
		n++
	}

	return n
}

// isWordAt reports whether a text has a letter or a digit at a byte.
func isWordAt(text string, i int) bool {
	if i < 0 || i >= len(text) {
		return false
	}
	c := text[i]

	return c >= utf8.RuneSelf || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}
