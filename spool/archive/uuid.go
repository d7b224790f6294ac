package archive

import "github.com/google/uuid"

// UUID is an id as a Store keeps it.
type UUID [16]byte

// ParseUUID reads an id in its form of 36 characters, and in no other.
func ParseUUID(s string) (id UUID, ok bool) {
	// uuid.Parse also takes a URN, braces, and no dashes,
	// which String would not give back.
	if len(s) != 36 {
		return id, false
	}
	parsed, err := uuid.Parse(s)
	return UUID(parsed), err == nil
}

// String is the form that ParseUUID reads.
func (id UUID) String() string { return uuid.UUID(id).String() }

// IDEnd is the part of a UUIDv7 behind its time.
type IDEnd [10]byte

// End returns the part of an id behind its time.
func (id UUID) End() IDEnd { return IDEnd(id[len(id)-len(IDEnd{}):]) }
