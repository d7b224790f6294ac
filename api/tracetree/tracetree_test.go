package tracetree

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"promptspool/api/wire"
)

// began is when the traces of the tests did.
var began = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// drawTrace draws a trace whose spans may be in circles, without their parents, and there twice.
func drawTrace(r *rapid.T) wire.Trace {
	t := wire.Trace{Success: true, TraceID: "5b8efff798038103d269b633813fc60c"}
	n := rapid.IntRange(0, 12).Draw(r, "spans")
	for i := range n {
		s := wire.TraceSpan{ID: fmt.Sprintf("record-%d", i)}
		s.SpanID = fmt.Sprintf("%d", rapid.IntRange(0, n).Draw(r, "span id"))
		if parent := rapid.IntRange(-2, n+1).Draw(r, "parent"); parent >= 0 {
			s.ParentID = new(fmt.Sprint(parent))
		}
		if start := rapid.IntRange(-1, 3).Draw(r, "start"); start >= 0 {
			s.StartTime = new(began.Add(time.Duration(start) * time.Second))
		}
		if rapid.Bool().Draw(r, "ended") {
			s.EndTime = new(began.Add(time.Duration(rapid.IntRange(0, 9).Draw(r, "end")) * time.Second))
		}
		s.Status = rapid.SampledFrom([]string{"", "SUCCESS", "ERROR"}).Draw(r, "status")
		if request := rapid.IntRange(-1, n).Draw(r, "request"); request >= 0 {
			s.RequestLogID = new(fmt.Sprint(request))
			s.InputTokens, s.Price = new(int64(request)), new(float64(request)/8)
		}
		if rapid.IntRange(0, 3).Draw(r, "same call") == 0 {
			s.SameCall = "another"
		}
		t.Spans = append(t.Spans, s)
	}

	return t
}

func TestAnyOrderOfArrivalMakesTheSameTree(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		trace := drawTrace(r)
		want := Of(trace)
		trace.Spans = rapid.Permutation(trace.Spans).Draw(r, "arrived")
		if diff := cmp.Diff(want, Of(trace)); diff != "" {
			r.Errorf("another order makes another tree (-want +got):\n%s", diff)
		}
	})
}

func TestATreeHasEachSpanOnceBelowItsParentAndAddsUp(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		trace := drawTrace(r)
		tree := Of(trace)
		seen, calls, failed := map[string]bool{}, map[string]bool{}, 0
		var tokens int64
		var starts, ends []time.Time
		for _, s := range trace.Spans {
			if s.StartTime != nil {
				starts = append(starts, *s.StartTime)
			}
			if s.EndTime != nil {
				ends = append(ends, *s.EndTime)
			}
			if s.Status == "ERROR" {
				failed++
			}
			if s.RequestLogID != nil && s.SameCall == "" && !calls[*s.RequestLogID] {
				calls[*s.RequestLogID] = true
				tokens += *s.InputTokens
			}
		}

		var check func(nodes []*wire.TraceNode, parent *wire.TraceNode)
		check = func(nodes []*wire.TraceNode, parent *wire.TraceNode) {
			for _, n := range nodes {
				if seen[n.ID] {
					r.Fatalf("%s is there twice", n.ID)
				}
				seen[n.ID] = true
				switch {
				case parent != nil && !n.ParentMissing && wire.OrZero(n.ParentID) != parent.SpanID:
					r.Errorf("%s is below %s and not its parent", n.ID, parent.ID)
				case parent == nil && !n.ParentMissing && wire.OrZero(n.ParentID) != "":
					r.Errorf("%s is a root and has a parent", n.ID)
				}
				spans := 1
				for _, c := range n.Children {
					spans += c.Total.Spans
				}
				if n.Total.Spans != spans {
					r.Errorf("%s has %d spans, want %d", n.ID, n.Total.Spans, spans)
				}
				check(n.Children, n)
			}
		}
		check(tree.Spans, nil)

		got := tree.Total
		if len(starts) > 0 && !got.StartTime.Equal(slices.MinFunc(starts, time.Time.Compare)) ||
			len(ends) > 0 && !got.EndTime.Equal(slices.MaxFunc(ends, time.Time.Compare)) {
			r.Errorf("the tree is from %v to %v", got.StartTime, got.EndTime)
		}
		var in int64
		if got.InputTokens != nil {
			in = *got.InputTokens
		}
		if len(seen) != len(trace.Spans) || got.Spans != len(seen) || got.Errors != failed ||
			got.Calls != len(calls) || in != tokens {
			r.Errorf("the tree has %+v of %d spans, want %d failed, %d calls, %d tokens",
				got, len(trace.Spans), failed, len(calls), tokens)
		}
	})
}

// chain returns a trace in which each span is below the one before it.
func chain(n int) (t wire.Trace) {
	for i := range n {
		s := wire.TraceSpan{ID: fmt.Sprintf("%08d", i), SpanID: fmt.Sprint(i)}
		s.StartTime = new(began.Add(time.Duration(i)))
		if i > 0 {
			s.ParentID = new(fmt.Sprint(i - 1))
		}
		t.Spans = append(t.Spans, s)
	}

	return t
}

// JSON of any depth is not what others can read.
func TestAChainIsCutAtTheGreatestDepth(t *testing.T) {
	tree := Of(chain(1000))
	all := Rows(&tree, nil)
	for i, row := range all {
		if want := min(i, wire.TraceDepthMax-1); row.Depth != want {
			t.Fatalf("span %s has depth %d, want %d", row.ID, row.Depth, want)
		}
	}
	if len(all) != 1000 || all[0].Total.Spans != 1000 || !tree.Running {
		t.Errorf("%d rows, the root has %d spans, running: %t", len(all), all[0].Total.Spans, tree.Running)
	}
	closed := chain(1)
	closed.Closed = true
	if Of(closed).Running {
		t.Error("a closed trace is running")
	}
	if depth := DepthThatFits(all, 10); depth != 9 {
		t.Errorf("nodes are folded from depth %d, want 9", depth)
	}
}

func TestATraceWithoutItsRootIsItsPartsAndOneWithItHasThemBelow(t *testing.T) {
	trace := chain(4)
	trace.Spans[2].ParentID = new("lost")
	tree := Of(trace)
	below := tree.Spans[0].Children
	if len(tree.Spans) != 1 || len(below) != 2 || !below[1].ParentMissing || below[1].ID != trace.Spans[2].ID {
		t.Errorf("with its root: %+v", tree.Spans)
	}

	trace.Spans = trace.Spans[1:]
	tree = Of(trace)
	if len(tree.Spans) != 2 || !tree.Spans[0].ParentMissing || !tree.Spans[1].ParentMissing || tree.Running {
		t.Errorf("without it: %+v", tree.Spans)
	}
}

func TestFoldedNodesHideWhatIsBelowThem(t *testing.T) {
	tree := Of(chain(4))
	rows := Rows(&tree, func(_ *wire.TraceNode, depth int) bool { return depth < 1 })
	if len(rows) != 2 || rows[0].Folded || !rows[1].Folded || !rows[1].Last {
		t.Errorf("%+v", rows)
	}
}

// Each span is below any of those before it.
func BenchmarkTreeOf33000Spans(b *testing.B) {
	trace := chain(33_000)
	for i := range trace.Spans[1:] {
		trace.Spans[i+1].ParentID = new(fmt.Sprint(rand.IntN(i + 1)))
	}
	rand.Shuffle(len(trace.Spans), func(i, j int) {
		trace.Spans[i], trace.Spans[j] = trace.Spans[j], trace.Spans[i]
	})

	b.ReportAllocs()
	for b.Loop() {
		Of(trace)
	}
}
