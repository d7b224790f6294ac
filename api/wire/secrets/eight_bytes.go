package secrets

import "encoding/binary"

// Eight bytes are judged in one step, as one word, with a high bit for each byte's
// answer.
const (
	everyByte = 0x0101010101010101
	highBits  = 0x80 * everyByte
)

// skipShort returns the first index from begin on where keyBytesMin bytes of a key may follow.
// So many bytes contain one of the words that are looked at here, whole, and most texts have few
// words without a blank, a quote or a comma.
func skipShort(source []byte, begin int) int {
	const step = keyBytesMin - 8 + 1

	for at := begin; at+8 <= len(source); at += step {
		word := binary.LittleEndian.Uint64(source[at:])
		if hasBytesBelow(word, '-') || keyBytes(word) != highBits {
			continue
		}

		// The key may begin between this word and the one before.
		for at > begin && byteKinds[source[at-1]]&ofKey != 0 {
			at--
		}
		return at
	}

	return len(source)
}

// hasBytesBelow reports whether a byte of a word is below limit, which is at most 0x80.
func hasBytesBelow(word, limit uint64) bool {
	return (word-limit*everyByte)&^word&highBits != 0
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
