package secrets

import (
	"encoding/binary"
	"math/bits"
)

// Eight bytes are judged in one step, as one word, with a high bit for each byte's
// answer.
const (
	everyByte = 0x0101010101010101
	highBits  = 0x80 * everyByte
)

// lastOther returns the index of the last byte of a window of keyBytesMin bytes that is
// not of a key, or -1.
func lastOther(window []byte) int {
	// Three words cover the 20 bytes; the last one overlaps.
	for _, i := range [...]int{keyBytesMin - 8, keyBytesMin - 16, 0} {
		if others := ^keyBytes(binary.LittleEndian.Uint64(window[i:])) & highBits; others != 0 {
			return i + 7 - bits.LeadingZeros64(others)/8
		}
	}
	return -1
}

// keyBytes sets the high bit of each of eight bytes that is a letter, a digit, - or _,
// and no other bit.
func keyBytes(word uint64) uint64 {
	low := word &^ highBits
	letters := bytesWithin(low|0x20*everyByte, 'a', 'z')
	others := bytesWithin(low, '0', '9') | bytesWithin(low, '-', '-') | bytesWithin(low, '_', '_')
	return (letters | others) & highBits &^ word
}

// base64Bytes is keyBytes for letters, digits, + and /.
func base64Bytes(word uint64) uint64 {
	low := word &^ highBits
	letters := bytesWithin(low|0x20*everyByte, 'a', 'z')
	others := bytesWithin(low, '/', '9') | bytesWithin(low, '+', '+') // / is right before 0
	return (letters | others) & highBits &^ word
}

// bytesWithin sets the high bit of each byte from first to last, and leaves the lower
// ones undefined. No byte of word may have its high bit set.
func bytesWithin(word, first, last uint64) uint64 {
	return (word + (0x80-first)*everyByte) &^ (word + (0x7f-last)*everyByte)
}
