package proxy

import (
	"testing"

	"pgregory.net/rapid"
)

// TestTheLedgerAgreesWithAMap plays random calls to a ledger and to a map.
func TestTheLedgerAgreesWithAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.Uint64Range(1, 5000).Draw(t, "first")
		l, state := newLedger(first), map[uint64]string{}
		frontier := first

		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			seq := first + rapid.Uint64Range(0, 3000).Draw(t, "seq")
			switch rapid.SampledFrom([]string{"take", "settle", "put back", "lose"}).Draw(t, "do") {
			case "take":
				l.tail = max(l.tail, seq+1)
				if took, want := l.take(seq), seq >= frontier && state[seq] == ""; took != want {
					t.Fatalf("take %d: %v, want %v", seq, took, want)
				} else if took {
					state[seq] = "taken"
				}
			case "settle":
				if state[seq] == "taken" {
					l.settle(seq, 10)
					state[seq] = "settled"
				}
			case "put back":
				if state[seq] == "taken" {
					l.putBack(seq)
					delete(state, seq)
				}
			case "lose":
				end := seq + rapid.Uint64Range(0, 200).Draw(t, "events")
				l.tail = max(l.tail, end)
				l.settleMissing(seq, end)
				for s := max(seq, frontier); s < end; s++ {
					if state[s] == "" {
						state[s] = "settled"
					}
				}
			}

			before := frontier
			for frontier < l.tail && state[frontier] == "settled" {
				frontier++
			}
			if moved := l.advance(); l.frontier != frontier || moved != (frontier > before) {
				t.Fatalf("the frontier is %d (moved: %v), want %d", l.frontier, moved, frontier)
			}

			pinned := false
			for s := frontier; s < l.tail; s++ {
				pinned = pinned || state[s] == "settled"
			}
			if !pinned && l.pinned() != 0 {
				t.Fatalf("nothing is pinned, and it says %d bytes", l.pinned())
			}

			if n := len(l.chunks); uint64(n) > l.span()/chunkEvents+3 {
				t.Fatalf("%d chunks for %d events", n, l.span())
			}
		}
	})
}
