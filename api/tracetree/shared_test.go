package tracetree

import (
	"runtime"
	"testing"
)

func TestReadersOfALongTraceShareItsTree(t *testing.T) {
	trace, other := chain(longTrace), chain(longTrace)
	var trees Shared
	first, again := trees.Of(trace), trees.Of(trace)
	if first != again || len(first.Rows) != longTrace {
		t.Error("the same trace gave two trees")
	}
	if trees.Of(other) == first {
		t.Error("other spans gave the same tree")
	}
	runtime.KeepAlive(first)

	// It is not held longer than somebody reads it.
	runtime.GC()
	if trees.last.Value() != nil {
		t.Error("a tree stays without a reader")
	}
}

func TestShortTracesAreNotShared(t *testing.T) {
	var trees Shared
	for _, n := range []int{0, 1, longTrace - 1} {
		trace := chain(n)
		if first := trees.Of(trace); first == trees.Of(trace) {
			t.Errorf("the tree of %d spans is shared", n)
		}
	}
}
