package jinja

import "promptspool/registry/render/language"

// run is the state of rendering one text. The total that all texts of a blueprint spend
// is in r.
type run struct {
	r     *language.Rendering
	out   []byte
	scope *scope
	depth int
	calls int // of macros within macros
}

// scope holds what was set in a block. Each for loop and each with has its own; an if
// does not.
type scope struct {
	names  map[string]any
	parent *scope
}

// step spends one step.
func (x *run) step() {
	x.spend(1)
}

// spend counts steps, and ends the rendering if there are too many or the caller is gone.
func (x *run) spend(steps int) {
	if x.r.Steps += steps; x.r.Steps > stepsMax {
		fail("takes more than %d steps to render", stepsMax)
	}
	if x.r.Steps-x.r.Looked < stepsPerCheck {
		return
	}

	x.r.Looked = x.r.Steps
	if x.r.Context != nil && x.r.Context.Err() != nil {
		x.r.Ended = true
		// The texts that follow are not rendered either.
		x.r.Steps = stepsMax
		fail("was not rendered to its end: the call ended")
	}
}

// pay counts the memory of a value. Call it before making the value.
func (x *run) pay(bytes int) {
	if bytes < 0 || bytes > valueBytesMax-x.r.Memory {
		x.r.Memory = valueBytesMax
		fail("makes more than %d MiB of values", valueBytesMax>>20)
	}

	x.r.Memory += bytes
}

// payTimes pays n times, without overflowing.
func (x *run) payTimes(bytes int, n int64) {
	if bytes == 0 {
		return
	}
	if bytes > 0 && n > valueBytesMax {
		n = valueBytesMax + 1
	}

	x.pay(bytes * int(n))
}

// read spends what reading a string costs. Everything that takes a value as a string pays
// for it, so no filter, test or method can be made to read a large string over and over
// for free.
func (x *run) read(bytes int) {
	x.spend(bytes / bytesPerStep)
}

// write appends to the output.
func (x *run) write(s string) {
	if x.r.Output -= len(s); x.r.Output < 0 {
		fail("%v", language.ErrOutput)
	}

	x.out = append(x.out, s...)
}

// deeper bounds the recursion of f into values.
func (x *run) deeper(f func()) {
	if x.depth++; x.depth > valueDepthMax {
		fail("makes values that are nested deeper than %d", valueDepthMax)
	}
	// Not deferred: a failure in f ends the whole rendering.
	f()
	x.depth--
}

func (x *run) runBody(body []node) {
	for _, n := range body {
		x.step()
		n.exec(x)
	}
}

// scoped calls f in a new scope.
func (x *run) scoped(names map[string]any, f func()) {
	x.scope = &scope{names: names, parent: x.scope}
	f()
	x.scope = x.scope.parent
}

func (x *run) set(name string, value any) {
	if x.scope.names == nil {
		x.scope.names = make(map[string]any)
	}
	// Names are set in loops, so they count as memory.
	x.pay(32)
	x.scope.names[name] = value
}

// lookup returns the value of a variable.
func (x *run) lookup(name string) any {
	// Each scope costs a step: a name that is not there is looked for in all of them.
	for s := x.scope; s != nil; s = s.parent {
		x.step()
		if v, ok := s.names[name]; ok {
			return v
		}
	}

	raw, ok := x.r.Variables[name]
	if !ok {
		return &undefined{name}
	}

	// Decoded once for all texts: a variable may be large, and used in a loop.
	if v, ok := x.r.Decoded[name]; ok {
		return v
	}
	v := x.decode(raw)
	if x.r.Decoded == nil {
		x.r.Decoded = make(map[string]any)
	}
	x.r.Decoded[name] = v

	return v
}

// capture runs a body and returns what it writes.
func (x *run) capture(body []node) string {
	// The block writes into its own buffer; a failure inside ends the whole rendering
	// anyway.
	outer := x.out
	x.out = nil
	x.runBody(body)
	s := string(x.out)
	x.pay(len(s))
	x.out = outer

	return s
}
