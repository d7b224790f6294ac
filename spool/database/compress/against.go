package compress

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"
)

// A body of a session mostly repeats another one of it. Packed against that one, its base, it is
//
//	3   against
//	n   which base: baseBytes, see Base
//	n   zstd, with the base as it was sent as the dictionary
//
// A base is never packed against another itself, so reading a body takes two values at most.
const against = 3

// Base names what a body is packed against: the body of an event of another record.
type Base struct {
	Request, Event [16]byte
	Sum            uint64 // XXH64 of the base as it was sent
	Bytes          uint32 // of the base as it was packed
}

// baseBytes is the length of a Base as it is stored.
const baseBytes = 16 + 16 + 8 + 4

// HeadBytes is how many of the first bytes of a packed body BaseOf needs.
const HeadBytes = 1 + baseBytes

// BaseOf returns what a body is packed against. ok is false if it stands alone.
func BaseOf(packed []byte) (b Base, ok bool) {
	if len(packed) < HeadBytes || packed[0] != against {
		return b, false
	}
	rest := packed[1:]
	copy(b.Request[:], rest)
	copy(b.Event[:], rest[16:])
	b.Sum = binary.BigEndian.Uint64(rest[32:])
	b.Bytes = binary.BigEndian.Uint32(rest[40:])

	return b, true
}

// Size returns how many bytes a body has that stands alone, without unpacking it. Of fewer than 256 it
// is 0 where their number is not stored.
func Size(packed []byte) int {
	if len(packed) == 0 || packed[0] != framed {
		return max(len(packed)-1, 0)
	}
	var head zstd.Header
	if err := head.Decode(packed[1:]); err != nil || !head.HasFCS {
		return 0
	}
	return int(min(head.FrameContentSize, unpackedMax))
}

// frameDictionary is the number that frames have which are packed against a body.
const frameDictionary = 3

// Packer packs bodies against one base. It is not safe for concurrent use.
type Packer struct {
	base    Base
	encoder *zstd.Encoder
}

// NewPacker returns what packs against the body of an event, which must stand alone.
func (c *Codec) NewPacker(request, event [16]byte, packed []byte) (*Packer, error) {
	plain, err := c.Unpack(packed, nil)
	if err != nil {
		return nil, err
	}
	base := Base{Request: request, Event: event, Sum: xxhash.Sum64(plain), Bytes: uint32(len(packed))}

	// Whatever lies further back than the window is not found: it has to hold the base, and a body that is a
	// fourth longer.
	window := max(1<<bits.Len(uint(len(plain)*9/4)), windowMin)

	// An encoder remembers so many places of its dictionary, and finds little of a longer one.
	level := zstd.SpeedBetterCompression
	switch {
	case window <= windowMin:
		level = zstd.SpeedFastest
	case window <= 8*windowMin:
		level = zstd.SpeedDefault
	}
	encoder, err := zstd.NewWriter(nil,
		zstd.WithEncoderConcurrency(1),
		zstd.WithLowerEncoderMem(true),
		zstd.WithEncoderLevel(level),
		zstd.WithWindowSize(window),
		zstd.WithEncoderDictRaw(frameDictionary, plain))

	return &Packer{base, encoder}, err
}

// windowMin is the window for a base of up to 112 KiB.
const windowMin = 256 << 10

// Pack packs a body against the base.
func (p *Packer) Pack(body []byte) []byte {
	packed := append(make([]byte, 0, HeadBytes+len(body)/16+64), against)
	packed = append(append(packed, p.base.Request[:]...), p.base.Event[:]...)
	packed = binary.BigEndian.AppendUint64(packed, p.base.Sum)
	packed = binary.BigEndian.AppendUint32(packed, p.base.Bytes)

	return p.encoder.EncodeAll(body, packed)
}

// ErrBase is for a base that is gone, or another body than the one that was packed against.
var ErrBase = errors.New("what it is packed against is not there")

// UnpackBody is Unpack for a body, which may be packed against another. read returns that one as it
// is packed; it is not asked for those that were used last.
func (c *Codec) UnpackBody(packed, buffer []byte, read func(Base) ([]byte, error)) ([]byte, error) {
	base, ok := BaseOf(packed)
	if !ok {
		return c.Unpack(packed, buffer)
	}

	plain := c.bases.get(base)
	if plain == nil {
		value, err := read(base)
		if err == nil && value == nil {
			err = ErrBase
		}
		if err == nil {
			plain, err = c.Unpack(value, nil)
		}
		if err == nil && xxhash.Sum64(plain) != base.Sum {
			err = ErrBase
		}
		if err != nil {
			return nil, err
		}
		c.bases.put(base, plain)
	}

	decoder, _ := c.decoders.Get().(*zstd.Decoder)
	if decoder == nil {
		var err error
		decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(unpackedMax))
		if err != nil {
			return nil, err
		}
	}
	defer c.decoders.Put(decoder)
	if err := decoder.ResetWithOptions(nil, zstd.WithDecoderDictRaw(frameDictionary, plain)); err != nil {
		return nil, err
	}

	return decoder.DecodeAll(packed[HeadBytes:], buffer[:0])
}

// keptBytesMax bounds the bases that are kept unpacked. A single one may be larger.
const keptBytesMax = 20 << 20

// bases are some bases that were read, unpacked: bodies of a session are often read together. It is
// safe for concurrent use.
type bases struct {
	mu    sync.Mutex
	kept  []keptBase // mu: the one that came first is the first
	bytes int        // mu: of kept
	gone  int        // mu: how many were dropped
}

type keptBase struct {
	base  Base
	plain []byte
}

// get returns a base, nil if it is not kept.
func (b *bases) get(base Base) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()

	for i := range b.kept {
		if b.kept[i].base == base {
			return b.kept[i].plain
		}
	}
	return nil
}

func (b *bases) put(base Base, plain []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.kept = append(b.kept, keptBase{base, plain})
	for b.bytes += len(plain); len(b.kept) > 1 && b.bytes > keptBytesMax; b.gone++ {
		// An export of sessions that were open together comes to each base in turn. If always the first
		// were dropped, it would meet none again, so mostly one of the newest is.
		i := (len(b.kept) - 1) * 7 / 8
		if b.gone%32 == 0 {
			i = 0
		}
		b.bytes -= len(b.kept[i].plain)
		b.kept = slices.Delete(b.kept, i, i+1)
	}
}
