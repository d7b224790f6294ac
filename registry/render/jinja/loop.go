package jinja

// loopState is the variable loop within a for.
type loopState struct {
	items   []any
	index   int
	changed []any // the last arguments of loop.changed
	called  bool
}

// member returns loop.name.
func (l *loopState) member(name string) (any, bool) {
	n := len(l.items)
	switch name {
	case "index":
		return int64(l.index + 1), true
	case "index0":
		return int64(l.index), true
	case "revindex":
		return int64(n - l.index), true
	case "revindex0":
		return int64(n - l.index - 1), true
	case "first":
		return l.index == 0, true
	case "last":
		return l.index == n-1, true
	case "length":
		return int64(n), true

	// Recursive loops are not supported, so every loop is the outermost.
	case "depth":
		return int64(1), true
	case "depth0":
		return int64(0), true

	case "previtem":
		if l.index > 0 {
			return l.items[l.index-1], true
		}
	case "nextitem":
		if l.index < n-1 {
			return l.items[l.index+1], true
		}
	}

	return nil, false
}

func (x *run) loopMethod(l *loopState, name string, a arguments) (any, bool) {
	switch name {
	case "cycle":
		if len(a.list) == 0 {
			fail("calls loop.cycle without values")
		}
		return a.list[l.index%len(a.list)], true

	case "changed":
		unchanged := l.called && x.equal(&listValue{items: l.changed}, &listValue{items: a.list})
		l.called, l.changed = true, a.list
		return !unchanged, true
	}

	return nil, false
}
