package redact

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"

	"promptspool/api/wire/jsonscan"
)

// kept are the top-level fields that the server needs unchanged: ids, times, scores, and
// the names of templates, scores and groups.
var kept = set(`request_id function_name request_start_time request_end_time score score_id name prompt_name prompt_id
	prompt_version prompt_label version label group_id trace_id span_id parent_span_id`)

// keptOfSpan are the members of a span, and of its events and links, that the server needs
// unchanged. All their digits could be taken for a card's.
var keptOfSpan = set("traceId spanId parentSpanId startTimeUnixNano endTimeUnixNano timeUnixNano")

// set returns a set of names.
func set(names string) map[string]bool {
	all := map[string]bool{}
	for name := range strings.FieldsSeq(names) {
		all[name] = true
	}
	return all
}

// spanDepth is how deep these members are: in the span, or in an element of one of its lists.
const spanDepth = 4

// nestedMax bounds how deep JSON within strings within JSON is followed.
const nestedMax = 3

// Body applies the rules to one write, which must be a valid JSON object. It calls count
// for each match, with the builtin's name, "pattern" or "path". The result is body itself
// if nothing matched, else a copy; body is not changed.
func (r *Rules) Body(body []byte, count func(rule, action string)) []byte {
	if r.Empty() {
		return body
	}

	w := walker{r: r, src: body, count: count}
	states := make([]state, len(r.paths))
	for i := range r.paths {
		states[i].rule = i
	}
	w.container(jsonscan.SkipSpace(body, 0), states, "", true)

	return w.done()
}

// walker walks a body and collects the edits.
type walker struct {
	r      *Rules
	src    []byte
	edits  []edit
	nested int     // in how many strings this is
	depth  int     // in how many containers
	inSpan bool    // in the top-level member span
	stream *stream // the array of chunks that this is in, or nil
	count  func(rule, action string)
}

func (w *walker) put(from, to int, text string) { w.edits = append(w.edits, edit{from, to, text}) }

func (w *walker) done() []byte {
	if len(w.edits) == 0 {
		return w.src
	}
	return edited(w.src, w.edits)
}

// container walks the object or array at i and returns the index after it. force is the
// action of a path rule that matched it, or "".
func (w *walker) container(i int, states []state, force string, top bool) int {
	object := w.src[i] == '{'
	w.depth++
	defer func() { w.depth-- }()

	if !object && w.stream == nil && w.depth <= streamDepthMax && isStream(w.src, i) {
		// Before any of its texts is reached: an address may
		// be spread over several chunks.
		w.stream = w.join(i)
		defer func() { w.stream = nil }()
	}

	// Where the member before ends.
	behind := i + 1
	// Some member stays.
	stays := false
	var renamed map[string]int
	c := jsonscan.Enter(w.src, i)
	for n := 0; c.Next(); n++ {
		var name []byte
		if object {
			name = jsonscan.UnquoteBytes(c.Name)
		}

		if top {
			w.inSpan = string(name) == "span"
		}

		// Only at the top: further down, a member of this name is the app's own.
		left := top && kept[string(name)] || w.inSpan && w.depth <= spanDepth && keptOfSpan[string(name)]
		next, action := w.step(states, object, name, n)
		if left {
			action = ""
		}
		if action != "" {
			w.count("path", action)
		}

		b := w.src[c.At]
		if action == Drop && !(top && (b == '{' || b == '[')) {
			// With the comma in front of it.
			c.At = jsonscan.SkipValue(w.src, c.At)
			w.put(behind, c.At, "")
			behind = c.At
			continue
		}

		// The comma after dropped members goes with them if nothing is left in front.
		if !stays && n > 0 {
			w.put(behind, c.Start, "")
		}
		stays = true

		if object && !left && action != Drop {
			renamed = w.name(c.Start, c.Start+len(c.Name), name, renamed)
		}
		switch value := c.At; {
		case left:
			c.At = jsonscan.SkipValue(w.src, value)
		case action == Drop:
			// The server requires the type. In ASCII } and ] come two after { and [.
			c.At = jsonscan.SkipValue(w.src, value)
			w.put(value, c.At, string([]byte{b, b + 2}))
		default:
			c.At = w.value(value, next, cmp.Or(action, force), name)
		}
		behind = c.At
	}
	return c.At
}

// value walks a value of any type and returns the index after it. name is its member's
// name, empty in an array.
func (w *walker) value(i int, states []state, force string, name []byte) int {
	c := w.src[i]
	switch c {
	case '{', '[':
		return w.container(i, states, force, false)
	case '"':
		return w.str(i, force)
	}

	end := jsonscan.SkipValue(w.src, i)
	isNumber := c == '-' || c >= '0' && c <= '9'
	switch {
	// Null has nothing to hide.
	case force != "" && c != 'n':
		w.force(i, end, force, w.src[i:end])
	case isNumber:
		w.number(i, end, name)
	}

	return end
}

// str is value for a string.
func (w *walker) str(i int, force string) int {
	end := jsonscan.SkipString(w.src, i)
	raw := w.src[i:end]

	if force != "" {
		w.force(i, end, force, jsonscan.UnquoteBytes(raw))
		return end
	}

	// Pieces of a stream were redacted when they were joined.
	if w.stream.take(i) {
		return end
	}

	p := pieces{text: jsonscan.UnquoteBytes(raw)}
	w.redact(&p)
	if p.changed {
		w.put(i, end, string(jsonscan.AppendString(nil, string(p.text))))
	}

	return end
}

// force replaces a whole value that a path rule matched. Its replacement names no kind of data.
func (w *walker) force(i, end int, action string, text []byte) {
	k := kind("masked")
	if action == Hash {
		k = "hash"
	}
	w.put(i, end, `"`+w.r.replace(k, action, text)+`"`)
}

// number redacts a number that is a card's, or a phone's if the member's name says so:
// its digits alone prove nothing.
func (w *walker) number(i, end int, name []byte) {
	text := w.src[i:end]
	// Some languages write a whole number as 123.0.
	if whole, fraction, ok := bytes.Cut(text, []byte(".")); ok && len(bytes.Trim(fraction, "0")) == 0 {
		text = whole
	}
	if len(text) < 8 || len(text) > 19 || len(bytes.Trim(text, "0123456789")) > 0 {
		return
	}

	k := kind("card")
	if !isCard(text) {
		k = "phone"
		if len(text) > 15 || !namesPhone(string(name)) {
			return
		}
	}

	if action := w.r.builtin[k]; action != "" {
		w.count(string(k), action)
		w.put(i, end, `"`+w.r.replace(k, action, text)+`"`)
	}
}

// namesPhone reports whether a member with this name may be a phone number.
func namesPhone(name string) bool {
	name = strings.ToLower(name)
	return name == "tel" || name == "cell" || strings.Contains(name, "phone") ||
		strings.Contains(name, "mobile") || strings.Contains(name, "whatsapp")
}

// name redacts a member's name, with builtins only: a pattern for texts could break names
// that are part of a format. Names that become equal get a number. renamed holds, for
// each name so far, the last number appended to it.
func (w *walker) name(start, end int, name []byte, renamed map[string]int) map[string]int {
	edits := w.scan(name)
	if len(edits) == 0 {
		return renamed
	}
	if renamed == nil {
		renamed = map[string]int{}
	}

	// A hostile body may have millions of names that become equal, so each continues
	// where the one before it stopped.
	base := string(edited(name, edits))
	text := base
	for renamed[text] > 0 {
		renamed[base]++
		text = base + "~" + strconv.Itoa(renamed[base])
	}
	renamed[text] = 1

	w.put(start, end, string(jsonscan.AppendString(nil, text)))
	return renamed
}

// redact redacts a text. If it is JSON, it redacts the values in it.
func (w *walker) redact(p *pieces) {
	i := jsonscan.SkipSpace(p.text, 0)
	isContainer := i < len(p.text) && (p.text[i] == '{' || p.text[i] == '[')
	if isContainer && w.nested < nestedMax && jsonscan.Valid(p.text) {
		// JSON is walked value by value: a match must not run
		// across its quotes and brackets.
		inner := walker{r: w.r, src: p.text, nested: w.nested + 1, count: w.count}
		inner.value(i, nil, "", nil)
		p.edit(inner.edits)
		return
	}

	// Builtins first: the patterns see what is left.
	p.edit(w.scan(p.text))
	for _, rule := range w.r.patterns {
		var edits []edit
		for _, at := range rule.re.FindAllIndex(p.text, -1) {
			// An empty match hides nothing.
			if at[0] < at[1] {
				w.count("pattern", rule.action)
				text := w.r.replace("pattern", rule.action, p.text[at[0]:at[1]])
				edits = append(edits, edit{at[0], at[1], text})
			}
		}
		p.edit(edits)
	}
}

// scan finds builtins.
func (w *walker) scan(text []byte) (edits []edit) {
	if len(w.r.builtin) == 0 {
		return nil
	}

	for from := 0; ; {
		k, start, end := w.r.builtin.next(text, from)
		if end == 0 {
			return edits
		}

		action := w.r.builtin[k]
		w.count(string(k), action)
		edits = append(edits, edit{start, end, w.r.replace(k, action, text[start:end])})
		from = end
	}
}

// edit replaces a part of a text. The edits of a text are in order and do not overlap.
type edit struct {
	from, to int
	text     string
}

// edited returns a copy of text with the edits applied.
func edited(text []byte, edits []edit) []byte {
	size := len(text)
	for _, e := range edits {
		size += len(e.text) - (e.to - e.from)
	}

	out, copied := make([]byte, 0, size), 0
	for _, e := range edits {
		out = append(append(out, text[copied:e.from]...), e.text...)
		copied = e.to
	}
	return append(out, text[copied:]...)
}

// pieces is a text that arrived in pieces.
type pieces struct {
	text    []byte // may alias the body, so it is never changed in place
	ends    []int  // of each piece in text
	changed bool
}

// edit applies edits of the whole text. The replacement of something that spans pieces
// goes into the first one.
func (p *pieces) edit(edits []edit) {
	if len(edits) == 0 {
		return
	}

	// By how much the edits before an end grew the text, and the edit after them.
	grown, next := 0, 0
	for i, end := range p.ends {
		// Every edit that ends in this piece moves its end, and those of all later ones.
		for next < len(edits) && edits[next].to <= end {
			grown += len(edits[next].text) - (edits[next].to - edits[next].from)
			next++
		}
		p.ends[i] = end + grown
		// The edit continues in the next piece: this one ends after the whole
		// replacement.
		if next < len(edits) && edits[next].from < end {
			p.ends[i] = edits[next].from + grown + len(edits[next].text)
		}
	}
	p.text, p.changed = edited(p.text, edits), true
}
