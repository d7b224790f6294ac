package rowcode

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// A metadata value of more than longBytes is only in the body of its event. States and
// rows hold a reference to it instead, which is
//
//	longMark   a noncharacter, which no text should have; what begins with it is referred to as well
//	32         HashValue, in hex
//	           the beginning of the value, at most longPrefixBytes
//
// so that equal values have equal references, and only they.
const (
	LongBytes       = 1024
	longPrefixBytes = 256
	longMark        = "\U0010FFFF"
)

// StoredValue returns what states and rows hold of a metadata value: itself,
// or a reference.
func StoredValue(key, value string) string {
	// A short value that begins with the mark gets a reference
	// too: as it is, it would be read as one.
	if len(value) <= LongBytes && !strings.HasPrefix(value, longMark) {
		return value
	}
	hash := HashValue(key, value)

	return longMark + hex.EncodeToString(hash[:]) + CutBytes(value, longPrefixBytes)
}

// HashStored returns HashValue of what a state or a row holds.
func HashStored(key, stored string) [16]byte {
	if hash, _, ok := readReference(stored); ok {
		return hash
	}

	return HashValue(key, stored)
}

// readReference takes a reference apart; ok is false for anything else.
func readReference(stored string) (hash [16]byte, prefix string, ok bool) {
	rest, ok := strings.CutPrefix(stored, longMark)
	if !ok || len(rest) < hex.EncodedLen(len(hash)) {
		return hash, "", false
	}
	digits, prefix := rest[:hex.EncodedLen(len(hash))], rest[hex.EncodedLen(len(hash)):]
	_, err := hex.Decode(hash[:], []byte(digits))

	return hash, prefix, err == nil
}

// IsReference reports whether a stored value is a reference to a long one.
func IsReference(stored string) bool {
	_, _, ok := readReference(stored)
	return ok
}

// ShownValue returns what lists show of a stored value.
func ShownValue(stored string) string {
	if _, prefix, ok := readReference(stored); ok {
		return prefix + "…"
	}

	return stored
}

// HashValue returns what a tombstone keeps of a metadata value. It does not reveal
// the value, because its owner asked to be forgotten. All stores use it, so
// tombstones can be copied.
func HashValue(name, value string) [16]byte {
	h := sha256.New()
	// The length comes first: otherwise "ab"+"c" and "a"+"bc" would be the same.
	h.Write(binary.AppendUvarint(nil, uint64(len(name))))
	h.Write([]byte(name))
	h.Write([]byte(value))
	return [16]byte(h.Sum(nil))
}

// CutBytes shortens a text to at most that many bytes, between two characters.
func CutBytes(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}

	// A copy: the short text must not keep a long body in memory.
	return strings.Clone(s[:most])
}
