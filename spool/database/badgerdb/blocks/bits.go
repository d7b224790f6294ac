package blocks

import (
	"math/bits"
	"slices"
)

// Bits has a bit for each row of a block.
type Bits []uint64

// newBits returns n bits, all clear or all set.
func newBits(n int, set bool) Bits {
	b := make(Bits, (n+63)/64)
	if set {
		for i := range b {
			b[i] = ^uint64(0)
		}

		// The bits after the last row stay clear: next must not find them.
		if n%64 != 0 {
			b[len(b)-1] = 1<<(n%64) - 1
		}
	}

	return b
}

// Has reports whether the bit of row i is set.
func (b Bits) Has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

func (b Bits) set(i int) { b[i/64] |= 1 << (i % 64) }

// Unset clears the bit of row i.
func (b Bits) Unset(i int) { b[i/64] &^= 1 << (i % 64) }

// next returns the first set bit at or after i, or -1.
func (b Bits) next(i int) int {
	for word := i / 64; word < len(b); word++ {
		// In the first word, the bits before i do not count.
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

// Within returns the first set bit from i to below end, or -1.
func (b Bits) Within(i, end int) int {
	if n := b.next(i); n >= 0 && n < end {
		return n
	}
	return -1
}

// Without returns the bits that are not set in other, which has as many.
func (b Bits) Without(other Bits) Bits {
	rest := slices.Clone(b)
	for i := range rest {
		rest[i] &^= other[i]
	}
	return rest
}

// Count returns how many bits are set from i to below end.
func (b Bits) Count(i, end int) (n int) {
	for word := i / 64; word < len(b) && word*64 < end; word++ {
		w := b[word]
		if word == i/64 {
			w &= ^uint64(0) << (i % 64)
		}
		if end-word*64 < 64 {
			w &= 1<<(end-word*64) - 1
		}
		n += bits.OnesCount64(w)
	}
	return n
}
