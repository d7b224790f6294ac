package badgerdb

import "math/bits"

// bitset has a bit for each row of a block.
type bitset []uint64

// reset returns n bits, all clear or all set, in the memory of b if that has room.
func (b bitset) reset(n int, set bool) bitset {
	words := (n + 63) / 64
	if cap(b) < words {
		b = make(bitset, words)
	}

	b = b[:words]
	clear(b)
	if set {
		for i := range b {
			b[i] = ^uint64(0)
		}

		// The bits behind the last row stay clear: next must not find them.
		if n%64 != 0 {
			b[words-1] = 1<<(n%64) - 1
		}
	}

	return b
}

func (b bitset) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

func (b bitset) set(i int) { b[i/64] |= 1 << (i % 64) }

func (b bitset) unset(i int) { b[i/64] &^= 1 << (i % 64) }

// next returns the first set bit at or behind i, or -1.
func (b bitset) next(i int) int {
	for word := i / 64; word < len(b); word++ {
		w := b[word]
		if word == i/64 {
			w &= ^uint64(0) << (i % 64)
		}

		if w != 0 {
			return word*64 + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// within returns the first set bit from i to below end, or -1.
func (b bitset) within(i, end int) int {
	if n := b.next(i); n >= 0 && n < end {
		return n
	}
	return -1
}
