// Package repack packs the bodies of a session against each other, for the stores of records.
//
// An agent sends its whole history with each call. So the longest body of a session has nearly
// everything that the others have: it stays as it is, the base, and each other that shares enough is
// packed against it (package compress). The key of a body stays the same, so rows, states and lists
// do not know. A base has a list of its dependants, which a deletion or a change of the base packs by
// themselves in the same transaction.
//
// Bodies of different projects, or of different weeks, are never packed together: those go apart.
//
// A Rule and Free decide; a Packer finds the sessions. Both stores use them.
package repack

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"promptspool/spool/archive"
	"promptspool/spool/database/compress"
)

// Body is the body of a record's event, as a store keeps it.
type Body struct {
	Request, Event archive.UUID

	Value      []byte     // packed
	Dependants Dependants // what is packed against it
}

// Dependants are the bodies that are packed against a base. It has the ids of the record and of the event
// of each. Some of them may be gone, or stand alone by now.
type Dependants []byte

// dependantBytes is the length of one in Dependants.
const dependantBytes = 32

// dependantsMax bounds how many bodies have one base: as many are packed again when it is deleted.
const dependantsMax = 64

// Len returns how many they are.
func (d Dependants) Len() int { return len(d) / dependantBytes }

// All calls fn with each dependant until it returns an error.
func (d Dependants) All(fn func(request, event archive.UUID) error) error {
	for one := range slices.Chunk(d, dependantBytes) {
		if len(one) < dependantBytes {
			return errors.New("a list of dependants is cut short")
		}
		if err := fn(archive.UUID(one), archive.UUID(one[16:])); err != nil {
			return err
		}
	}
	return nil
}

// Has reports whether a body is among the dependants.
func (d Dependants) Has(request, event archive.UUID) bool {
	wanted := append(request[:], event[:]...)
	for one := range slices.Chunk(d, dependantBytes) {
		if bytes.Equal(one, wanted) {
			return true
		}
	}
	return false
}

// triesMost is how many bodies in a row may share too little before the others are not tried.
const triesMost = 4

// Rule is what is worth to be packed against another body.
type Rule struct {
	Least, Largest int     // a body of so many bytes, as it was sent
	Most           float64 // if it takes less than this share of what it takes by itself
}

// DefaultRule leaves out what is not worth its place in a list, and what is large. Packing takes several
// times its size in memory.
var DefaultRule = Rule{Least: 512, Largest: 8 << 20, Most: 0.75}

// roundsMax bounds how many bases bodies that came together get: the agents within a session each have
// a history.
const roundsMax = 4

// Pack packs bodies of a session against each other, those that stand alone so far. It returns those
// that changed: with a new Value, or as a base with new Dependants. keep are the records whose bodies
// it needs the next time, besides those that came until then.
func (r Rule) Pack(codec *compress.Codec, bodies []Body) (changed []Body, keep []archive.UUID, err error) {
	var alone []*Body
	var base *Body
	for i := range bodies {
		b := &bodies[i]
		_, dependent := compress.BaseOf(b.Value)
		switch {
		case dependent:
		case len(b.Dependants) == 0:
			alone = append(alone, b)
		case b.Dependants.Len() < dependantsMax:
			// The last that has room: bodies come in the order of their calls.
			base = b
		}
	}
	alone = slices.DeleteFunc(alone, func(b *Body) bool {
		size := compress.Size(b.Value)
		return size < r.Least || size > r.Largest
	})
	slices.SortStableFunc(alone, func(a, b *Body) int {
		return cmp.Compare(compress.Size(b.Value), compress.Size(a.Value))
	})

	for range roundsMax {
		if base != nil && len(alone) > 0 && outgrows(alone[0], base) {
			base = nil
		}
		if base == nil {
			if len(alone) < 2 {
				break
			}
			base, alone = alone[0], alone[1:]
		}

		packed, rest, err := r.packAgainst(codec, base, alone)
		if err != nil {
			return nil, nil, err
		}
		if len(keep) == 0 {
			keep = append(keep, base.Request)
		}
		changed, alone, base = append(changed, packed...), rest, nil
		if len(packed) == 0 {
			// The rest has nothing in common.
			break
		}
	}
	if len(alone) > 0 {
		// The next bodies may share more with it.
		keep = append(keep, alone[0].Request)
	}

	return changed, slices.Compact(keep), nil
}

// outgrows reports whether a body is better a base itself: what it has more than the base, those that
// follow it have as well, each for itself.
func outgrows(longest, base *Body) bool {
	return compress.Size(longest.Value) > compress.Size(base.Value)*5/4
}

// packAgainst packs bodies against a base. rest are those that stay alone.
func (r Rule) packAgainst(
	codec *compress.Codec, base *Body, alone []*Body,
) (changed []Body, rest []*Body, err error) {
	packer, err := codec.NewPacker(base.Request, base.Event, base.Value)
	if err != nil {
		return nil, nil, err
	}

	all := slices.Clone(base.Dependants)
	var plain []byte
	misses := 0
	for i, b := range alone {
		if all.Len() == dependantsMax || misses == triesMost {
			rest = append(rest, alone[i:]...)
			break
		}

		plain, err = codec.Unpack(b.Value, plain)
		if err != nil {
			return nil, nil, err
		}
		packed := packer.Pack(plain)
		if float64(len(packed)) > r.Most*float64(len(b.Value)) {
			rest = append(rest, b)
			misses++
			continue
		}
		misses = 0
		changed = append(changed, Body{Request: b.Request, Event: b.Event, Value: packed})
		// It is listed already if it was packed against this base before, and then replaced.
		if !all.Has(b.Request, b.Event) {
			all = append(append(all, b.Request[:]...), b.Event[:]...)
		}
	}
	if len(changed) > 0 {
		changed = append(changed, Body{Request: base.Request, Event: base.Event, Dependants: all})
	}

	return changed, rest, nil
}

// Free packs the dependants of a base by themselves, as they have to be before the base goes or changes.
// read returns a body as it is stored, nil if it is gone; write stores it.
func Free(
	codec *compress.Codec, base Body, read func(request, event archive.UUID) ([]byte, error), write func(Body),
) error {
	return base.Dependants.All(func(request, event archive.UUID) error {
		value, err := read(request, event)
		if err != nil {
			return err
		}
		on, ok := compress.BaseOf(value)
		if !ok || on.Request != base.Request || on.Event != base.Event {
			return nil
		}

		plain, err := codec.UnpackBody(value, nil, func(compress.Base) ([]byte, error) { return base.Value, nil })
		if err == nil {
			write(Body{Request: request, Event: event, Value: codec.Body(plain)})
		}
		return err
	})
}
