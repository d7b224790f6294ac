package calls

import "context"

// reading is the reading of one body. It is over when its context ends: what was not read
// by then is missing.
type reading struct {
	ctx      context.Context
	elements int // that were read
	over     bool
}

// elementsPerLook is how many elements are read between two looks at the context, in about
// a millisecond.
const elementsPerLook = 4096

// isOver reports whether the reading is over. It is called with each element of a list.
func (r *reading) isOver() bool {
	if r == nil {
		return false
	}
	if r.elements++; r.elements%elementsPerLook == 0 && r.ctx.Err() != nil {
		r.over = true
	}

	return r.over
}
