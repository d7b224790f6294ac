package redact

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"promptspool/api/wire/jsonscan"
)

// A streamed answer may be logged as an array of chunks, in the formats that the archive
// assembles. An address may span several chunks, so their texts are joined before they
// are scanned: all texts at the same place of their chunks, separately for each index of
// a choice, a block or a tool call.

const (
	streamBytesMax = 1 << 20 // of texts that are joined; a match across this boundary is missed
	streamDepthMax = 4       // of containers around an array of chunks
	chunkDepthMax  = 8       // of containers in a chunk, around a text
	laneBytes      = 64      // of memory for a lane, besides its text
	indexBytesMax  = 20      // of an index
	placeBytesMax  = 64      // of a name that is part of a place
)

var (
	// chunkMembers identify a chunk that has no type.
	chunkMembers = set("choices candidates messageStart contentBlockStart contentBlockDelta")

	// pieceMembers contain the pieces of texts.
	pieceMembers = set("content text reasoning_content reasoning refusal arguments partial_json thinking input delta")

	// indexMembers distinguish pieces at the same place.
	indexMembers = set("index contentBlockIndex output_index")
)

// isStream reports whether the array at i consists of chunks, judging by its first
// element.
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
			chunk = chunk || kind == "message_start" ||
				strings.HasPrefix(kind, "content_block_") || strings.HasPrefix(kind, "response.")
		}

		role, content = role || m.Name == "role", content || m.Name == "content"
	}

	// An array of messages may look alike, but its elements have both.
	return chunk && !(role && content)
}

// stream joins the texts of an array of chunks.
type stream struct {
	w       *walker
	lanes   map[string]*lane
	size    int     // of the lanes, in bytes
	places  []int32 // of all pieces, in their order
	changed []edit  // edits of pieces
}

// lane is the texts of one place, joined.
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
	// Lane by lane until here, but the walk takes the pieces in their order.
	slices.SortFunc(s.changed, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	return s
}

// array collects the pieces in the objects of an array, which continue each other unless they name
// an index.
func (s *stream) array(i int, place []byte, depth int) {
	for c := jsonscan.Enter(s.w.src, i); c.Next(); c.At = jsonscan.SkipValue(s.w.src, c.At) {
		if s.w.src[c.At] == '{' {
			s.object(c.At, place, depth+1)
		}
	}
}

// object collects the pieces in an object. Its index, if it has one, is part of their place.
func (s *stream) object(i int, place []byte, depth int) {
	if depth > chunkDepthMax {
		return
	}

	src := s.w.src
	// First the index, wherever it is among the members: it is part of the place of all.
	for c := jsonscan.Enter(src, i); c.Next(); {
		begin := c.At
		c.At = jsonscan.SkipValue(src, begin)
		if c.At-begin <= indexBytesMax && indexMembers[string(jsonscan.UnquoteBytes(c.Name))] {
			place = append(append(append(place, '#'), src[begin:c.At]...), '.')
		}
	}

	for c := jsonscan.Enter(src, i); c.Next(); c.At = jsonscan.SkipValue(src, c.At) {
		name := jsonscan.UnquoteBytes(c.Name)
		// The text of a block continues in deltas.
		if string(name) == "content_block" {
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

// piece adds the text at an index of src to the lane of its place.
func (s *stream) piece(at int, place []byte) {
	// The map copies its key: place is a buffer that the next piece writes over.
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

	// Memory stays bounded; only a match across this boundary is missed.
	if s.size += len(text); s.size > streamBytesMax {
		s.flush()
	}
}

// flush redacts the joined texts, and notes the pieces that changed.
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
			// Only pieces that changed: all others keep their bytes, escapes included.
			if text := p.text[from:end]; !bytes.Equal(text, jsonscan.UnquoteBytes(s.w.src[at:to])) {
				s.changed = append(s.changed, edit{at, to, string(jsonscan.AppendString(nil, string(text)))})
			}
			from = end
		}
	}

	clear(s.lanes)
	s.size = 0
}

// take reports whether the text at i is a piece, and applies its edit if it has one.
func (s *stream) take(i int) bool {
	if s == nil {
		return false
	}

	// Pieces are taken in order, so those in front of i are done with.
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
