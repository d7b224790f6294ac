package redact

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"promptspool/api/wire/jsonscan"
)

// A model's answer that is logged as it was streamed is an array of chunks, in the forms that the archive puts together. An address
// may lie in several of them, so what belongs together is joined before it is looked at: all texts that stand at the same place of their
// chunks, apart for each index of a choice, a block or a tool call.

const (
	streamBytesMax = 1 << 20 // of texts that are joined at once; what lies across the end of such a stretch is not seen
	streamDepthMax = 4       // of the containers that an array of chunks lies in
	chunkDepthMax  = 8       // of the containers in a chunk that a text lies in
	laneBytes      = 64      // that a lane takes besides its text
	indexBytesMax  = 20      // of what is an index
	placeBytesMax  = 64      // of a name that is part of a place
)

// chunkMembers tell a chunk; of those with a type, that does.
var chunkMembers = map[string]bool{
	"choices": true, "candidates": true, "messageStart": true, "contentBlockStart": true, "contentBlockDelta": true,
}

// pieceMembers hold the pieces.
var pieceMembers = map[string]bool{
	"content": true, "text": true, "reasoning_content": true, "reasoning": true, "refusal": true, "arguments": true,
	"partial_json": true, "thinking": true, "input": true, "delta": true,
}

// indexMembers tell pieces of the same place apart.
var indexMembers = map[string]bool{"index": true, "contentBlockIndex": true, "output_index": true}

// isStream reports whether the array at i is of chunks: its first element says it.
func isStream(src []byte, i int) bool {
	i = jsonscan.SkipSpace(src, i+1)
	if src[i] != '{' {
		return false
	}

	chunk, role, content := false, false, false
	for m := range jsonscan.Members(src[i:jsonscan.SkipValue(src, i)]) {
		switch {
		case chunkMembers[m.Name]:
			chunk = true
		case m.Name == "type":
			kind := strings.Trim(string(m.Value), `"`)
			chunk = chunk || kind == "message_start" || strings.HasPrefix(kind, "content_block_") || strings.HasPrefix(kind, "response.")
		}
		role, content = role || m.Name == "role", content || m.Name == "content"
	}
	return chunk && !(role && content)
}

// stream is what of an array of chunks is joined.
type stream struct {
	w       *walker
	lanes   map[string]*lane
	size    int     // of the lanes
	places  []int32 // of all pieces, in their order
	changed []edit  // of pieces
}

// lane is the texts of one place.
type lane struct {
	text []byte
	ends []int   // of the pieces in text
	at   []int32 // where the pieces are in the walker's src
}

// join redacts the pieces of the array at i.
func (w *walker) join(i int) *stream {
	s := &stream{w: w, lanes: map[string]*lane{}}
	s.array(i, nil, 0)
	s.flush()
	slices.SortFunc(s.changed, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	return s
}

// array collects the pieces in an array. The chunks themselves, and the parts of a message, follow each other; the elements of
// other arrays are apart.
func (s *stream) array(i int, place []byte, depth int) {
	together := depth == 0 || bytes.HasSuffix(place, []byte("parts."))
	c := jsonscan.Enter(s.w.src, i)
	for n := 0; c.Next(); n++ {
		to := place
		if !together {
			to = append(strconv.AppendInt(place, int64(n), 10), ' ')
		}
		if s.w.src[c.At] == '{' {
			s.object(c.At, to, depth+1)
		}
		c.At = jsonscan.SkipValue(s.w.src, c.At)
	}
}

// object collects the pieces in an object. An index stands for the place in an array.
func (s *stream) object(i int, place []byte, depth int) {
	if depth > chunkDepthMax {
		return
	}
	src := s.w.src
	own := len(place)
	for c := jsonscan.Enter(src, i); c.Next(); {
		begin := c.At
		c.At = jsonscan.SkipValue(src, begin)
		if c.At-begin <= indexBytesMax && indexMembers[string(jsonscan.UnquoteBytes(c.Name))] {
			if own > 0 && place[own-1] == ' ' {
				own = bytes.LastIndexByte(place[:own-1], '.') + 1
			}
			place = append(append(append(place[:own], '#'), src[begin:c.At]...), '.')
		}
	}

	for c := jsonscan.Enter(src, i); c.Next(); c.At = jsonscan.SkipValue(src, c.At) {
		name := jsonscan.UnquoteBytes(c.Name)
		if string(name) == "content_block" { // it begins what the deltas go on with
			name = []byte("delta")
		}
		name = name[:min(len(name), placeBytesMax)]
		switch b := src[c.At]; {
		case b == '"' && pieceMembers[string(name)]:
			s.piece(c.At, append(place, name...))
		case b == '{':
			s.object(c.At, append(append(place, name...), '.'), depth+1)
		case b == '[':
			s.array(c.At, append(append(place, name...), '.'), depth+1)
		}
	}
}

func (s *stream) piece(at int, place []byte) {
	l := s.lanes[string(place)]
	if l == nil {
		l = &lane{}
		s.lanes[string(place)] = l
		s.size += laneBytes
	}
	text := jsonscan.UnquoteBytes(s.w.src[at:jsonscan.SkipString(s.w.src, at)])
	l.text = append(l.text, text...)
	l.ends = append(l.ends, len(l.text))
	l.at = append(l.at, int32(at))
	s.places = append(s.places, int32(at))
	if s.size += len(text); s.size > streamBytesMax {
		s.flush()
	}
}

// flush redacts what has been joined.
func (s *stream) flush() {
	for _, l := range s.lanes {
		p := pieces{text: l.text, ends: l.ends}
		s.w.redact(&p)
		if !p.changed {
			continue
		}

		from := 0
		for i, end := range p.ends {
			at := int(l.at[i])
			to := jsonscan.SkipString(s.w.src, at)
			if text := p.text[from:end]; !bytes.Equal(text, jsonscan.UnquoteBytes(s.w.src[at:to])) {
				s.changed = append(s.changed, edit{at, to, string(jsonscan.AppendString(nil, string(text)))})
			}
			from = end
		}
	}
	clear(s.lanes)
	s.size = 0
}

// take carries out the edit of the piece at i, if there is a piece.
func (s *stream) take(i int) bool {
	if s == nil {
		return false
	}
	for len(s.places) > 0 && int(s.places[0]) < i {
		s.places = s.places[1:]
	}
	if len(s.places) == 0 || int(s.places[0]) > i {
		return false
	}

	for len(s.changed) > 0 && s.changed[0].from < i {
		s.changed = s.changed[1:]
	}
	if len(s.changed) > 0 && s.changed[0].from == i {
		e := s.changed[0]
		s.w.put(e.from, e.to, e.text)
	}
	return true
}
