package calls

import "context"

// reading is the reading of one member of a body. It is over when its context ends, or after
// most elements: what was not read by then is missing.
type reading struct {
	ctx      context.Context
	elements int // that were met
	most     int
	look     int // the next look at the context is at so many elements
	over     bool
}

// elementsMax bounds the elements of all lists in an input, and in a response: the chunks of a
// stream, messages, parts. The longest answers of models have 128,000 tokens, most of them
// several in a chunk.
const elementsMax = 1 << 17

// An element may be tiny, and what is read of it is not: beyond the first elementsFree there may
// be one for each so many bytes. The shortest chunk of an answer has some 40.
const (
	elementsFree = 8192
	elementBytes = 24
)

// newReading returns the reading of so many bytes.
func newReading(ctx context.Context, bytes int) *reading {
	return &reading{ctx: ctx, most: min(elementsFree+bytes/elementBytes, elementsMax), look: elementsPerLook}
}

// elementsPerLook is how many elements are read between two looks at the context, in about
// a millisecond.
const elementsPerLook = 4096

// messageElements is what a message counts: far more becomes of it, for the archive and on pages,
// than of a part or a chunk.
const messageElements = 4

// countMessage counts a message that is read from an element.
func (r *reading) countMessage() {
	if r != nil {
		r.elements += messageElements - 1
	}
}

// isOver reports whether the reading is over. It is called with each element of a list.
func (r *reading) isOver() bool {
	if r == nil {
		return false
	}
	r.elements++
	if r.tooMany() || r.elements >= r.look && r.ctx.Err() != nil {
		r.over = true
	}
	if r.elements >= r.look {
		r.look = r.elements + elementsPerLook
	}

	return r.over
}

// tooMany reports whether there were more elements than are read.
func (r *reading) tooMany() bool { return r != nil && r.elements > r.most }
