// Package rollup sums up the records of sessions, traces and users, so that lists of these
// need not read the records.
//
// A database keeps a roll-up under each name, and changes it in the transaction that changes
// a record: it takes out what the record added before, and puts in what it adds now. So the
// sums are exact, whatever came when. The first and the last moment are bounds only: after a
// deletion or an edit they may be wider than what is left.
package rollup

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"math"
	"strings"
)

// Kind is what a roll-up is of. The numbers are stored.
type Kind int

// The kinds of roll-ups.
const (
	Session Kind = iota
	Trace
	User

	Kinds = iota
)

// Number is one of the sums of a roll-up. The order is that on disk.
type Number int

// The numbers of a roll-up.
const (
	Turns Number = iota // calls, as lists of requests show them
	Spans               // records with a span, calls among them
	Cost                // in billionths of a dollar
	InputTokens
	OutputTokens
	Errors // calls that failed, and other spans
	Scores // how many
	ScoreSum

	Numbers = iota
)

// Columns are the names of the numbers, as PostgreSQL has them.
var Columns = [Numbers]string{
	"turns", "spans", "cost", "input_tokens", "output_tokens", "errors", "scores", "score_sum",
}

// Sums is what records add up to.
type Sums struct {
	First, Last int64 // when the first began and the last ended, in microseconds since 1970
	Of          [Numbers]int64
}

// None returns the sums of no records. Its bounds are far from every moment, and so near each other
// that their difference is a number.
func None() Sums { return Sums{First: math.MaxInt64 / 4, Last: math.MinInt64 / 4} }

// Add adds other sums.
func (s *Sums) Add(other Sums) {
	s.First, s.Last = min(s.First, other.First), max(s.Last, other.Last)
	for i, n := range other.Of {
		s.Of[i] += n
	}
}

// Subtract takes other sums out. The bounds stay.
func (s *Sums) Subtract(other Sums) {
	for i, n := range other.Of {
		s.Of[i] -= n
	}
}

// Empty reports whether no records are left.
func (s *Sums) Empty() bool { return !s.Listed() && s.Of[Scores] == 0 }

// Listed reports whether lists show the roll-up. Scores alone make no session.
func (s *Sums) Listed() bool { return s.Of[Turns] != 0 || s.Of[Spans] != 0 }

// Encode returns the stored form of the sums.
func (s *Sums) Encode() (value []byte) {
	value = binary.AppendVarint(binary.AppendVarint(nil, s.First), s.Last-s.First)
	for _, n := range s.Of {
		value = binary.AppendVarint(value, n)
	}

	return value
}

// errSums is for a value that Encode did not return.
var errSums = errors.New("it is not the sums of a roll-up")

// Decode reads what Encode returned.
func Decode(value []byte) (s Sums, err error) {
	next := func() (n int64) {
		n, size := binary.Varint(value)
		if size <= 0 {
			err = errSums
		}
		value = value[max(size, 0):]
		return n
	}

	s.First = next()
	s.Last = s.First + next()
	for i := range s.Of {
		s.Of[i] = next()
	}
	if len(value) > 0 {
		err = errSums
	}

	return s, err
}

// nameBytesMax bounds a name: an index of PostgreSQL, and a transaction of Badger, take no more.
const nameBytesMax = 512

// Name returns a name under which a roll-up is kept; "" for one that is too long.
func Name(name string) string {
	if len(name) > nameBytesMax || strings.ContainsRune(name, 0) {
		return ""
	}
	return name
}

// Part is what one record adds to each of its roll-ups.
type Part struct {
	Names [Kinds]string // "" where it adds nothing
	Sums
}

// Proof adds up parts and takes out stored roll-ups. It is zero in the end if these are the sums of
// the parts, and is small, however many names there are.
type Proof [Numbers]uint64

// AddPart adds what a record adds.
func (p *Proof) AddPart(part *Part) {
	for kind, name := range part.Names {
		if name != "" {
			p.add(Kind(kind), name, &part.Sums, 1)
		}
	}
}

// Subtract takes out what is stored under a name, or a part of it.
func (p *Proof) Subtract(kind Kind, name string, s *Sums) { p.add(kind, name, s, -1) }

func (p *Proof) add(kind Kind, name string, s *Sums, sign int64) {
	h := fnv.New64a()
	h.Write([]byte{byte(kind)})
	h.Write([]byte(name))

	// By a weight for each name: too much under one must not make up for too little under another.
	for i, n := range s.Of {
		p[i] += (h.Sum64() | 1) * uint64(sign*n)
	}
}
