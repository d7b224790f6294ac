package jinja

import "promptspool/registry/render/language"

// run is the state of one rendering of one text.
type run struct {
	r     *language.Rendering
	out   []byte
	scope *scope
	depth int
}

// scope is what was set in a block. A for loop and a with have their own; an if has not.
type scope struct {
	names  map[string]any
	parent *scope
}

// step takes one step off those that may still be made.
func (x *run) step() {
	x.spend(1)
}

// spend takes steps off, and ends the rendering if its caller has gone.
func (x *run) spend(steps int) {
	if x.r.Steps += steps; x.r.Steps > stepsMax {
		fail("takes more than %d steps to render", stepsMax)
	}
	if x.r.Steps-x.r.Looked < stepsPerCheck {
		return
	}

	x.r.Looked = x.r.Steps
	select {
	case <-x.r.Done:
		x.r.Ended = true
		x.r.Steps = stepsMax // for the texts that follow, too
		fail("was not rendered to its end: the call ended")
	default:
	}
}

// pay takes what a value takes off the memory that may still be used. It comes before the value is made.
func (x *run) pay(bytes int) {
	if bytes < 0 || bytes > valueBytesMax-x.r.Memory {
		x.r.Memory = valueBytesMax
		fail("makes more than %d MiB of values", valueBytesMax>>20)
	}
	x.r.Memory += bytes
}

// read takes what looking through a text costs off the steps. Whoever takes a value as a text pays for it, so that no
// filter, test or method can be made to read a large text without end.
func (x *run) read(bytes int) {
	x.spend(bytes / bytesPerStep)
}

// write adds to the outcome.
func (x *run) write(s string) {
	if x.r.Output -= len(s); x.r.Output < 0 {
		panic(&language.Error{Message: language.ErrOutput.Error()})
	}
	x.out = append(x.out, s...)
}

// deeper guards the recursion of f.
func (x *run) deeper(f func()) {
	if x.depth++; x.depth > valueDepthMax {
		fail("makes values that are nested deeper than %d", valueDepthMax)
	}
	f()
	x.depth--
}

func (x *run) runBody(body []node) {
	for _, n := range body {
		x.step()
		n.exec(x)
	}
}

// scoped runs a body in a scope of its own.
func (x *run) scoped(names map[string]any, f func()) {
	x.scope = &scope{names: names, parent: x.scope}
	f()
	x.scope = x.scope.parent
}

func (x *run) set(name string, value any) {
	if x.scope.names == nil {
		x.scope.names = make(map[string]any)
	}
	x.pay(32)
	x.scope.names[name] = value
}

// lookup is the value of a variable.
func (x *run) lookup(name string) any {
	for s := x.scope; s != nil; s = s.parent {
		x.step()
		if v, ok := s.names[name]; ok {
			return v
		}
	}
	if raw, ok := x.r.Variables[name]; ok {
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
	return &undefined{name}
}

// capture runs a body and returns what it writes.
func (x *run) capture(body []node) string {
	outer := x.out
	x.out = nil
	x.runBody(body)
	s := string(x.out)
	x.pay(len(s))
	x.out = outer
	return s
}
