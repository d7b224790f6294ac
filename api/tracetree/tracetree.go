// Package tracetree makes a tree of the spans of a trace, for the API, the dashboard and the command.
//
// Ids are the callers' own, so that a trace may be any graph, and its spans arrive in any order. The
// same spans always make the same tree, in which each of them is once.
package tracetree

import (
	"cmp"
	"slices"
	"sync"
	"time"
	"weak"

	"promptspool/api/wire"
)

// Of returns the tree of a trace.
//
// Spans whose parent is missing are below the first root, if there is one. A circle of parents is cut
// open at one of its spans, which counts as one without its parent.
func Of(t wire.Trace) wire.TraceTree {
	b := newBuilder(t.Spans)
	for i := range b.nodes {
		b.place(i)
	}
	tree := wire.TraceTree{Success: true, TraceID: t.TraceID, Spans: []*wire.TraceNode{}, TraceFacts: t.TraceFacts}
	for i := range b.nodes {
		if p := b.parents[i]; p >= 0 {
			b.nodes[p].Children = append(b.nodes[p].Children, &b.nodes[i])
		} else {
			tree.Spans = append(tree.Spans, &b.nodes[i])
		}
	}

	b.addUp()
	for _, root := range tree.Spans {
		add(&tree.Total, &root.Total)
	}
	if b.root >= 0 {
		root := &b.nodes[b.root]
		tree.Running = !t.Closed && root.StartTime != nil && root.EndTime == nil
	}

	return tree
}

// failed is the status of a span that failed.
const failed = "ERROR"

// builder places spans in a tree.
type builder struct {
	nodes   []wire.TraceNode // by start
	parents []int            // by node; none for a root
	depths  []int            // by node; unplaced or under way until it has its place
	root    int              // the first span that names no parent, or none
	named   map[string]int   // the first span with an id
}

// Values of parents and depths without a number.
const (
	none     = -1
	unplaced = -1
	underWay = -2
)

func newBuilder(spans []wire.TraceSpan) *builder {
	b := &builder{
		nodes:   make([]wire.TraceNode, len(spans)),
		parents: make([]int, len(spans)),
		depths:  make([]int, len(spans)),
		root:    none,
		named:   make(map[string]int, len(spans)),
	}
	sorted := make([]*wire.TraceSpan, len(spans))
	for i := range spans {
		sorted[i] = &spans[i]
	}
	slices.SortFunc(sorted, func(x, y *wire.TraceSpan) int {
		return cmp.Or(wire.OrZero(x.StartTime).Compare(wire.OrZero(y.StartTime)), cmp.Compare(x.ID, y.ID))
	})

	for i, s := range sorted {
		b.nodes[i].TraceSpan = *s
		b.depths[i] = unplaced
		if _, again := b.named[s.SpanID]; !again {
			b.named[s.SpanID] = i
		}
		if b.root == none && wire.OrZero(b.nodes[i].ParentID) == "" {
			b.root = i
		}
	}

	return b
}

// place gives a node and those above it their parents and depths.
func (b *builder) place(i int) {
	// It leads from the node upwards.
	var path []int
	for at := i; at != none && b.depths[at] == unplaced; at = b.parents[at] {
		b.depths[at] = underWay
		path = append(path, at)

		parent, known := b.named[wire.OrZero(b.nodes[at].ParentID)]
		switch {
		case wire.OrZero(b.nodes[at].ParentID) == "":
			parent = none
		case !known || b.depths[parent] == underWay:
			b.nodes[at].ParentMissing = true
			parent = b.root
		}
		b.parents[at] = parent
	}

	for _, at := range slices.Backward(path) {
		parent := b.parents[at]
		if parent == none {
			b.depths[at] = 0
			continue
		}
		if b.depths[parent] == wire.TraceDepthMax-1 {
			parent = b.parents[parent]
		}
		b.parents[at], b.depths[at] = parent, b.depths[parent]+1
	}
}

// addUp gives each node the total of itself and of all below it.
func (b *builder) addUp() {
	// The calls that were counted, by their requests.
	counted := make(map[string]bool, len(b.nodes))
	byDepth := make([][]int, wire.TraceDepthMax)
	for i := range b.nodes {
		n := &b.nodes[i]
		byDepth[b.depths[i]] = append(byDepth[b.depths[i]], i)
		n.Total = wire.TraceTotal{Spans: 1, StartTime: n.StartTime, EndTime: n.EndTime}
		if n.Status == failed {
			n.Total.Errors = 1
		}
		if n.RequestLogID != nil && n.SameCall == "" && !counted[*n.RequestLogID] {
			counted[*n.RequestLogID] = true
			n.Total.Calls = 1
			n.Total.InputTokens, n.Total.OutputTokens, n.Total.Price = n.InputTokens, n.OutputTokens, n.Price
		}
	}

	for _, level := range slices.Backward(byDepth[1:]) {
		for _, i := range level {
			add(&b.nodes[b.parents[i]].Total, &b.nodes[i].Total)
		}
	}
}

// add adds a total to another one.
func add(to, t *wire.TraceTotal) {
	to.Spans += t.Spans
	to.Calls += t.Calls
	to.Errors += t.Errors
	to.InputTokens = sum(to.InputTokens, t.InputTokens)
	to.OutputTokens = sum(to.OutputTokens, t.OutputTokens)
	to.Price = sum(to.Price, t.Price)
	if to.StartTime == nil || t.StartTime != nil && t.StartTime.Before(*to.StartTime) {
		to.StartTime = t.StartTime
	}
	if to.EndTime == nil || t.EndTime != nil && t.EndTime.After(*to.EndTime) {
		to.EndTime = t.EndTime
	}
}

// sum returns a sum in which an unknown number counts nothing; nil if neither is known.
func sum[N int64 | float64](a, b *N) *N {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return new(*a + *b)
}

// Row is a node of a tree as a line of a list.
type Row struct {
	*wire.TraceNode

	Depth  int
	Last   bool // of the children of its parent
	Folded bool // has children that are not listed
}

// Rows lists a tree: each node is followed by those below it if it is open. Nil opens all.
func Rows(t *wire.TraceTree, isOpen func(n *wire.TraceNode, depth int) bool) []Row {
	var rows []Row
	var list func(nodes []*wire.TraceNode, depth int)
	list = func(nodes []*wire.TraceNode, depth int) {
		for i, n := range nodes {
			row := Row{TraceNode: n, Depth: depth, Last: i == len(nodes)-1}
			row.Folded = len(n.Children) > 0 && isOpen != nil && !isOpen(n, depth)
			rows = append(rows, row)
			if !row.Folded {
				list(n.Children, depth+1)
			}
		}
	}
	list(t.Spans, 0)

	return rows
}

// DepthThatFits returns the depth from which nodes are folded so that at most rowsMax rows are
// listed. It is at least 1: roots are open.
func DepthThatFits(all []Row, rowsMax int) int {
	var byDepth [wire.TraceDepthMax]int
	for _, row := range all {
		byDepth[row.Depth]++
	}

	depth, listed := 0, byDepth[0]
	for depth < wire.TraceDepthMax-1 && (depth == 0 || listed+byDepth[depth+1] <= rowsMax) {
		depth++
		listed += byDepth[depth]
	}

	return depth
}

// IsFault reports whether the span failed while none below it did.
func (r Row) IsFault() bool { return r.Status == failed && r.Total.Errors == 1 }

// FirstFault returns the place of the first span that failed while none below it did, or 0.
func FirstFault(all []Row) int { return max(slices.IndexFunc(all, Row.IsFault), 0) }

// Window returns some of the rows of a list, after those above the first of them.
func Window(rows []Row, from, to int) []Row {
	return append(Above(rows, from), rows[from:to]...)
}

// Above returns the rows above one of a list, from its root down.
func Above(rows []Row, at int) (above []Row) {
	for i, depth := at-1, rows[at].Depth; i >= 0 && depth > 0; i-- {
		if rows[i].Depth < depth {
			above, depth = append(above, rows[i]), rows[i].Depth
		}
	}
	slices.Reverse(above)

	return above
}

// Times returns when the span began and ended. One that lacks a time is as long as those below it; nil
// is unknown.
func (r Row) Times() (start, end *time.Time) {
	return cmp.Or(r.StartTime, r.Total.StartTime), cmp.Or(r.EndTime, r.Total.EndTime)
}

// Whole is a tree with all of its rows. Its readers must not change it.
type Whole struct {
	wire.TraceTree

	Rows []Row

	first *wire.TraceSpan // of those that it was made of
}

// Shared makes the trees of long traces one at a time, and shares the last one among its readers.
//
// Such a tree takes more memory and time than what a page shows of it. It is kept as long as a reader
// has it. The zero value is ready. Safe for concurrent use.
type Shared struct {
	mu   sync.Mutex
	last weak.Pointer[Whole] // under mu
}

// longTrace is from how many spans on a tree is shared.
const longTrace = 1000

// Of returns the tree of a trace. It is shared by those who were given the same spans.
func (s *Shared) Of(t wire.Trace) *Whole {
	made := &Whole{}
	if len(t.Spans) >= longTrace {
		s.mu.Lock()
		defer s.mu.Unlock()

		// As long as there is a tree, its spans are in no other memory.
		made.first = &t.Spans[0]
		if last := s.last.Value(); last != nil && last.first == made.first {
			return last
		}
		s.last = weak.Make(made)
	}
	made.TraceTree = Of(t)
	made.Rows = Rows(&made.TraceTree, nil)

	return made
}
