package tracetree

import (
	"cmp"
	"slices"
	"time"

	"promptspool/api/wire"
)

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

// FirstFault returns the place of the first span that failed while none below it did, or 0.
func FirstFault(all []Row) int {
	at := slices.IndexFunc(all, func(r Row) bool { return r.Status == failed && r.Total.Errors == 1 })

	return max(at, 0)
}

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
