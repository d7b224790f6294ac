package jinja

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"promptspool/registry/render/language"
)

// texts makes a list of texts.
func (x *run) texts(list []string) *listValue {
	x.pay(32 * len(list))
	l := &listValue{items: make([]any, len(list))}
	for i, s := range list {
		l.items[i] = s
	}
	return l
}

func stripped(s, side string, a arguments) string {
	set, ok := a.get(0, "chars")
	cut := unicode.IsSpace
	if ok && set != nil {
		chars := a.x.str(set)
		a.x.pay(len(chars))
		runes := make(map[rune]bool)
		for _, r := range chars {
			runes[r] = true
		}
		cut = func(r rune) bool { return runes[r] }
	}
	if side != "rstrip" {
		s = strings.TrimLeftFunc(s, cut)
	}
	if side != "lstrip" {
		s = strings.TrimRightFunc(s, cut)
	}
	return s
}

func (x *run) split(s, name string, a arguments) *listValue {
	separator, given := a.get(0, "sep")
	most := a.number(1, "maxsplit", -1)
	x.pay(16 * len(s))
	if !given || separator == nil {
		return x.texts(splitBlank(s, most, name == "rsplit"))
	}
	sep := x.str(separator)
	if sep == "" {
		fail("splits at an empty text")
	}
	if name == "split" || most < 0 {
		if most >= 0 {
			most++
		}
		return x.texts(strings.SplitN(s, sep, most))
	}
	parts := strings.Split(s, sep)
	if n := len(parts) - most; n > 1 {
		parts = append([]string{strings.Join(parts[:n], sep)}, parts[n:]...)
	}
	return x.texts(parts)
}

// splitBlank splits at runs of blanks, at most so many times, from the left or the right.
func splitBlank(s string, most int, right bool) []string {
	if most < 0 {
		return strings.Fields(s)
	}
	var parts []string
	if right {
		for s = strings.TrimRightFunc(s, unicode.IsSpace); s != ""; most-- {
			i := strings.LastIndexFunc(s, unicode.IsSpace)
			if i < 0 || most == 0 {
				parts = append(parts, s)
				break
			}
			_, size := utf8.DecodeRuneInString(s[i:])
			parts = append(parts, s[i+size:])
			s = strings.TrimRightFunc(s[:i], unicode.IsSpace)
		}
		slices.Reverse(parts)

		return parts
	}
	for s = strings.TrimLeftFunc(s, unicode.IsSpace); s != ""; most-- {
		i := strings.IndexFunc(s, unicode.IsSpace)
		if i < 0 || most == 0 {
			return append(parts, s)
		}
		parts = append(parts, s[:i])
		s = strings.TrimLeftFunc(s[i:], unicode.IsSpace)
	}
	return parts
}

// lines splits at line breaks; one at the end makes no line of its own.
func lines(s string) []string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

func (x *run) replace(s, old, with string, count int) string {
	n := strings.Count(s, old)
	if count >= 0 {
		n = min(n, count)
	}
	x.pay(len(s) + n*max(len(with), len(old)))
	return strings.Replace(s, old, with, count)
}

// joined joins values, as texts.
func (x *run) joined(items []any, separator string) string {
	var b strings.Builder
	for i, item := range items {
		s := x.str(item)
		if i > 0 {
			x.pay(len(separator))
			b.WriteString(separator)
		}
		x.pay(len(s) + 1)
		b.WriteString(s)
	}
	return b.String()
}

func (x *run) padded(s, how string, a arguments) string {
	fill := a.text(1, "fillchar", " ")
	if utf8.RuneCountInString(fill) != 1 {
		fail("fills with %q, which is not one character", language.Shorten(fill))
	}
	if how == "zfill" {
		fill = "0"
	}
	lack := a.number(0, "width", 0) - utf8.RuneCountInString(s)
	if lack <= 0 {
		return s
	}
	x.payTimes(len(fill), int64(lack))
	x.pay(len(s))
	left := lack
	switch how {
	case "ljust":
		left = 0
	case "center": // as Python rounds it
		left = lack/2 + lack&(lack+utf8.RuneCountInString(s))&1
	case "zfill":
		if s != "" && (s[0] == '-' || s[0] == '+') {
			return s[:1] + strings.Repeat(fill, lack) + s[1:]
		}
	}
	return strings.Repeat(fill, left) + s + strings.Repeat(fill, lack-left)
}

func (x *run) partition(s, separator string, last bool) *listValue {
	if separator == "" {
		fail("splits at an empty text")
	}
	i := strings.Index(s, separator)
	parts := []string{s, "", ""}
	if last {
		i = strings.LastIndex(s, separator)
		parts = []string{"", "", s}
	}
	if i >= 0 {
		parts = []string{s[:i], separator, s[i+len(separator):]}
	}
	l := x.texts(parts)
	l.tuple = true
	return l
}

// upper is the text in large letters; ß, which has none of its own, becomes SS.
func upper(s string) string { return strings.ReplaceAll(strings.ToUpper(s), "ß", "SS") }

func capitalized(s string) string {
	_, size := utf8.DecodeRuneInString(s)
	return strings.ToTitle(s[:size]) + strings.ToLower(s[size:])
}

// pythonTitle begins every run of letters with a large one.
func pythonTitle(s string) string {
	before := false
	return strings.Map(func(r rune) rune {
		letter := unicode.IsLetter(r)
		defer func() { before = letter }()
		if letter && !before {
			return unicode.ToTitle(r)
		}
		return unicode.ToLower(r)
	}, s)
}

// titleCase is the filter: it begins words with a large letter, where words end at blanks and at - ( { [ <.
func titleCase(s string) string {
	begins := true
	return strings.Map(func(r rune) rune {
		out := unicode.ToLower(r)
		if begins {
			out = unicode.ToUpper(r)
		}
		begins = unicode.IsSpace(r) || strings.ContainsRune("-({[<", r)
		return out
	}, s)
}

// indent puts width before every line but the first, and but blank ones, as Jinja's filter does.
func (x *run) indent(s, width string, first, blank bool) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	s += "\n" // so that splitting keeps an empty last line
	list := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	x.payTimes(len(width)+1, int64(len(list)))
	x.pay(2*len(s) + 16*len(list))
	var b strings.Builder
	for i, line := range list {
		if i > 0 {
			b.WriteByte('\n')
		}
		if (i > 0 || first) && (line != "" || blank || i == 0) {
			b.WriteString(width)
		}
		b.WriteString(line)
	}
	return b.String()
}

// truncated cuts a text to length characters, its ending included, unless it is only leeway longer.
func (x *run) truncated(s string, length int, killWords bool, end string, leeway int) string {
	runes := x.runes(s)
	if len(runes) <= length+leeway {
		return s
	}
	tail := utf8.RuneCountInString(end)
	if length < tail {
		fail("truncates to fewer than the %d characters of the ending", tail)
	}
	kept := string(runes[:length-tail])
	if !killWords {
		if i := strings.LastIndexByte(kept, ' '); i >= 0 {
			kept = kept[:i]
		}
	}
	return kept + end
}

// wrapped breaks lines that are longer than width, as Python's textwrap does with Jinja's defaults, but that words are parted at
// blanks and, if they are too long themselves, anywhere.
func (x *run) wrapped(s string, width int, breakLong bool, with string) string {
	if width < 1 {
		fail("wraps at the width %d", width)
	}
	x.pay(3*len(s) + 16)
	var out []string
	for _, line := range lines(s) {
		out = append(out, x.wrapLine(line, width, breakLong)...)
	}
	list := x.texts(out)
	return x.joined(list.items, with)
}

func (x *run) wrapLine(line string, width int, breakLong bool) []string {
	var out []string
	now := ""
	count := 0
	flush := func() {
		if now = strings.TrimRightFunc(now, unicode.IsSpace); now != "" || out == nil {
			out = append(out, now)
		}
		now, count = "", 0
	}
	for _, chunk := range blankRuns(line) {
		x.step()
		n := utf8.RuneCountInString(chunk)
		blank := strings.TrimSpace(chunk) == ""
		if count+n > width && now != "" && !(breakLong && n > width) {
			flush()
		}
		if blank && now == "" && out != nil {
			continue
		}
		for breakLong && n > width && !blank {
			room := width - count
			if room < 1 {
				flush()
				continue
			}
			runes := []rune(chunk)
			now += string(runes[:room])
			chunk = string(runes[room:])
			n -= room
			x.pay(4 * len(chunk))
			flush()
		}
		now += chunk
		x.pay(len(now))
		count += n
	}
	flush()
	return out
}

// blankRuns cuts a text into runs of blanks and runs of anything else.
func blankRuns(s string) []string {
	var runs []string
	start := 0
	blank := false
	for i, r := range s {
		if b := unicode.IsSpace(r); i > start && b != blank {
			runs = append(runs, s[start:i])
			start, blank = i, b
		} else if i == start {
			blank = b
		}
	}
	if start < len(s) {
		runs = append(runs, s[start:])
	}
	return runs
}
