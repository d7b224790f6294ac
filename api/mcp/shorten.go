package mcp

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"promptspool/api/wire/jsonscan"
)

// shortening is how an answer is made short: its longest texts are cut first, all at the same length, then
// its longest lists. It stays whole JSON.
type shortening struct {
	bytesMax int
	omit     []string // paths of members that are left out, in which * is any element
	mark     bool     // whether what is cut says how to read on
	path     string   // of the value in the answer
	offset   int      // how many of its characters, elements or members are left out in front

	text  int // characters of a text
	items int // elements of a list, members of an object
	out   []byte
	way   []string       // names and numbers that lead to the value that is being written
	long  map[int]string // long texts by where they begin, so that they are decoded once
}

// omitDepth is how deep the members are that a tool leaves out.
const omitDepth = 5

// omits reports whether a member of the current object is left out.
func (s *shortening) omits(value []byte, name string) bool {
	// That nothing was found is an answer.
	if isEmpty(value) && (value[0] != '[' || len(s.way) > 0) {
		return true
	}
	if len(s.way) >= omitDepth {
		return false
	}

	path := s.path
	for _, step := range s.way {
		if _, err := strconv.Atoi(step); err == nil {
			step = "*"
		}
		path += "/" + step
	}
	return slices.Contains(s.omit, path+"/"+name)
}

// textMin is how many characters are left of a text before rows are left out.
const textMin = 60

// shorten returns the value at b[i] in at most bytesMax, and whether it has all rows. Values that are null or empty are
// left out of objects, except the lists of the first one.
func (s shortening) shorten(b []byte, i int) (short []byte, whole bool) {
	s.long = map[int]string{}
	fits := func(text, items int) bool {
		s.text, s.items, s.out = text, items, nil
		s.write(b, i, s.offset)
		return len(s.out) <= s.bytesMax
	}

	text := sort.Search(s.bytesMax-textMin, func(i int) bool { return !fits(textMin+i, s.bytesMax) })
	if text > 0 {
		fits(textMin+text-1, s.bytesMax)
		return s.out, true
	}
	items := sort.Search(s.bytesMax, func(i int) bool { return !fits(textMin, i) })
	if items > 0 && fits(textMin, items-1) {
		return s.out, false
	}

	return []byte(`"It does not fit into max_tokens. Ask for more, or for a part by path."`), false
}

// write appends the value that begins at b[i], and returns the index just after it; -1 if what is written is
// too long already. The first skip of its characters, elements or members are left out. It looks at each byte
// once, however deep it is.
func (s *shortening) write(b []byte, i, skip int) (end int) {
	if len(s.out) > s.bytesMax {
		return -1
	}

	switch b[i] {
	case '{', '[':
		return s.writeContainer(b, i, skip)
	case '"':
		return s.writeText(b, i, skip)
	}
	end = jsonscan.SkipValue(b, i)
	s.out = append(s.out, b[i:end]...)

	return end
}

func (s *shortening) writeContainer(b []byte, i, skip int) int {
	s.out = append(s.out, b[i])
	n, left := 0, 0
	c := jsonscan.Enter(b, i)
	for c.Next() {
		shown := n < skip+s.items
		step := ""
		if shown {
			step = stepOf(c.Name, n)
			shown = c.Name == nil || !s.omits(b[c.At:], step)
		} else {
			left++
		}
		if shown {
			n++
		}
		if !shown || n <= skip {
			c.At = jsonscan.SkipValue(b, c.At)
			continue
		}

		s.begin(c.Name)
		s.way = append(s.way, step)
		c.At = s.write(b, c.At, 0)
		s.way = s.way[:len(s.way)-1]
	}

	if left > 0 {
		if c.Name != nil {
			c.Name = []byte(`"…"`)
		}
		s.begin(c.Name)
		s.writeString(s.rest(left, "elements", skip+s.items))
	}
	// In ASCII ] and } come two after [ and {.
	s.out = append(s.out, b[i]+2)

	return c.At
}

// begin appends what is before a value: a comma, if it is not the first, and its name, if it has one.
func (s *shortening) begin(name []byte) {
	if last := s.out[len(s.out)-1]; last != '{' && last != '[' {
		s.out = append(s.out, ',')
	}
	if name != nil {
		s.writeString(cut(jsonscan.Unquote(name), s.text))
		s.out = append(s.out, ':')
	}
}

func (s *shortening) writeText(b []byte, i, skip int) int {
	end := jsonscan.SkipString(b, i)
	text, known := s.long[i]
	if !known {
		text = jsonscan.Unquote(b[i:end])
	}
	if !known && len(text) > s.bytesMax {
		s.long[i] = text
	}

	text = text[len(cut(text, skip)):]
	kept := cut(text, s.text)
	left := ""
	if len(kept) < len(text) {
		left = s.rest(len(text)-len(kept), "bytes", skip+s.text)
	}
	s.writeString(kept + left)

	return end
}

// rest says what was cut off of the value that is being written.
func (s *shortening) rest(n int, what string, offset int) string {
	if !s.mark {
		return "…"
	}

	path := strings.Join(append([]string{s.path}, s.way...), "/")
	return fmt.Sprintf("… [%d more %s: path=%s offset=%d]", n, what, path, offset)
}

// cut returns the first characters of a text.
func cut(text string, characters int) string {
	for i := range text {
		if characters == 0 {
			return text[:i]
		}
		characters--
	}

	return text
}

// isEmpty reports whether JSON begins with a value that says nothing.
func isEmpty(b []byte) bool {
	return slices.ContainsFunc([]string{"null", `""`, "[]", "{}"}, func(empty string) bool {
		return bytes.HasPrefix(b, []byte(empty))
	})
}

// writeString appends a JSON string.
func (s *shortening) writeString(text string) {
	s.out = append(s.out, escape(jsonscan.AppendString(nil, text))...)
}

// escape writes the characters of a JSON text that are not seen as escapes: those that drive a terminal, turn
// the direction of what follows, or carry words that only a model reads.
func escape(text []byte) []byte {
	var b []byte
	for _, r := range string(text) {
		if r <= '~' || unicode.IsPrint(r) {
			b = utf8.AppendRune(b, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			b = fmt.Appendf(b, `\u%04x`, unit)
		}
	}

	return b
}

// stepOf returns the step of a JSON pointer to a member or, without a name, to the n-th element.
func stepOf(name []byte, n int) string {
	if name == nil {
		return strconv.Itoa(n)
	}
	return escapePointer.Replace(jsonscan.Unquote(name))
}

var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

// lookup returns the index in b of the value at a path, a JSON pointer.
func lookup(b []byte, path string) (at int, found bool) {
	at = jsonscan.SkipSpace(b, 0)
	steps := strings.Split(path, "/")
	found = steps[0] == ""
	for _, step := range steps[1:] {
		if !found || b[at] != '{' && b[at] != '[' {
			return 0, false
		}
		found = false
		c := jsonscan.Enter(b, at)
		for n := 0; c.Next(); n++ {
			// The end of the value is not looked for: it would be at each step.
			at, found = c.At, stepOf(c.Name, n) == step
			if found {
				break
			}
			c.At = jsonscan.SkipValue(b, c.At)
		}
	}

	return at, found
}
