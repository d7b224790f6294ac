package archive

import (
	"encoding/hex"
	"strings"
)

// UUID is an id as a Store keeps it.
type UUID [16]byte

// ParseUUID reads an id in the one form that the archive uses.
func ParseUUID(s string) (id UUID, ok bool) {
	digits := strings.ReplaceAll(s, "-", "")
	if len(s) != 36 || len(digits) != 32 {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(digits))
	return id, err == nil
}

// String is the form that ParseUUID reads.
func (id UUID) String() string {
	var s [36]byte
	hex.Encode(s[:8], id[:4])
	hex.Encode(s[9:13], id[4:6])
	hex.Encode(s[14:18], id[6:8])
	hex.Encode(s[19:23], id[8:10])
	hex.Encode(s[24:], id[10:])
	s[8], s[13], s[18], s[23] = '-', '-', '-', '-'
	return string(s[:])
}
