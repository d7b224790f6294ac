package rowcode

import "encoding/binary"

// Reader takes values off the front of bytes. After a fault it returns zero values. Not
// safe for concurrent use.
type Reader struct {
	Rest []byte // what was not read yet; nil after a fault
	Err  error  // nil, or ErrRow
}

// Fail ends the reading: what was read makes no sense.
func (r *Reader) Fail() { r.Rest, r.Err = nil, ErrRow }

// Uvarint reads what binary.AppendUvarint wrote.
func (r *Reader) Uvarint() uint64 {
	// Most are that small; millions of them are read for one answer.
	if len(r.Rest) > 0 && r.Rest[0] < 0x80 {
		n := r.Rest[0]
		r.Rest = r.Rest[1:]
		return uint64(n)
	}

	return r.longUvarint()
}

func (r *Reader) longUvarint() uint64 {
	// After a fault Rest is empty, so this fails again and returns 0.
	n, used := binary.Uvarint(r.Rest)
	if used <= 0 {
		r.Fail()
		return 0
	}
	r.Rest = r.Rest[used:]

	return n
}

// Varint reads what binary.AppendVarint wrote.
func (r *Reader) Varint() int64 {
	n := r.Uvarint()
	return int64(n>>1) ^ -int64(n&1)
}

// Take returns the next n bytes, which alias those that are read.
func (r *Reader) Take(n uint64) []byte {
	// The length comes from the bytes, which may be damaged.
	if n > uint64(len(r.Rest)) {
		r.Fail()
		return nil
	}
	b := r.Rest[:n]
	r.Rest = r.Rest[n:]
	return b
}

// Text reads what AppendText wrote.
func (r *Reader) Text() string { return string(r.Take(r.Uvarint())) }

// AppendText appends a text and its length.
func AppendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// AppendTexts appends texts, not their number.
func AppendTexts(b []byte, texts []string) []byte {
	for _, s := range texts {
		b = AppendText(b, s)
	}
	return b
}
