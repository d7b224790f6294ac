package compress

import (
	_ "embed"
	"errors"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// A packed value is
//
//	1   how the rest is packed: plain, or framed: zstd, with the dictionary that its frame names;
//	    Mark may be set
//	n   the rest
//
// A body may be packed against another, and a state quickly:
//
//	3   against.go has the rest
//	4   s2, with the dictionary of states; Mark may be set
const (
	plain  = 1
	framed = 2
	quick  = 4

	// Mark is a bit of the first byte that is the caller's. Unpack ignores it.
	Mark = 0x80
)

var errPacked = errors.New("it is not packed as this version does")

// unpackedMax bounds what one value may unpack to: more than the largest body and the
// largest state.
const unpackedMax = 256 << 20

// Codec packs and unpacks values. It is safe for concurrent use.
type Codec struct {
	columns, bodies, states *zstd.Encoder
	decoder                 *zstd.Decoder

	quick    *s2.Dict
	bases    bases     // against which other bodies are packed; see against.go
	decoders sync.Pool // of *zstd.Decoder, for bodies that are packed against others
}

// New returns a codec. workers bounds the goroutines that pack, and those that unpack,
// because each needs memory.
func New(workers int) (*Codec, error) {
	encoder := func(more ...zstd.EOption) (*zstd.Encoder, error) {
		// A small window bounds the memory of an encoder: few values are larger.
		return zstd.NewWriter(nil, append(more,
			zstd.WithEncoderConcurrency(workers),
			zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithWindowSize(128<<10))...)
	}
	columns, err1 := encoder()
	bodies, err2 := encoder(zstd.WithEncoderDictRaw(bodyDictionaryID, []byte(bodyDictionary)))
	states, err3 := encoder(zstd.WithEncoderDictRaw(stateDictionaryID, []byte(stateDictionary)))

	// One for all: each frame names the dictionary that it was packed with.
	decoder, err4 := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(workers),
		zstd.WithDecoderMaxMemory(unpackedMax),
		zstd.WithDecoderDictRaw(bodyDictionaryID, []byte(bodyDictionary)),
		zstd.WithDecoderDictRaw(stateDictionaryID, []byte(stateDictionary)))

	c := &Codec{columns: columns, bodies: bodies, states: states, decoder: decoder}
	c.quick = s2.MakeDict([]byte(stateDictionary), nil)
	return c, errors.Join(err1, err2, err3, err4)
}

// Body packs a body.
func (c *Codec) Body(value []byte) []byte { return pack(c.bodies, value, len(value)) }

// State packs a state.
func (c *Codec) State(value []byte) []byte { return pack(c.states, value, len(value)) }

// Column packs a column of a block, unless it would stay larger than a third. That would
// save little compared to the bodies (0.5 % of the disk), and unpacking it costs a search
// a third of its time.
func (c *Codec) Column(value []byte) []byte { return pack(c.columns, value, len(value)/3) }

// Plain returns a value that is only marked as packed.
func Plain(value []byte) []byte { return append([]byte{plain}, value...) }

// pack packs a value if fewer than most bytes result. Otherwise it stays as it is.
func pack(encoder *zstd.Encoder, value []byte, most int) []byte {
	// The byte is in front already, so that nothing has to be copied after it.
	packed := encoder.EncodeAll(value, append(make([]byte, 0, len(value)/2+64), framed))
	if len(packed)-1 < most {
		return packed
	}

	return append(append(packed[:0], plain), value...)
}

// QuickState packs a state less than State does, in an eighth of the time. ok is false if it would not
// become smaller.
func (c *Codec) QuickState(value []byte) (packed []byte, ok bool) {
	packed = append(make([]byte, 0, 1+s2.MaxEncodedLen(len(value))), quick)
	rest := c.quick.Encode(packed[1:1], value)
	packed = packed[:1+len(rest)]

	return packed, len(packed) < len(value)
}

// IsQuick reports whether QuickState made a value. JSON never begins so, nor does any other form.
func IsQuick(packed []byte) bool { return len(packed) > 0 && packed[0]&^Mark == quick }

// Unpack returns what was packed, in buffer if that has space.
func (c *Codec) Unpack(packed, buffer []byte) ([]byte, error) {
	if len(packed) == 0 {
		return nil, errPacked
	}

	switch packed[0] &^ Mark {
	case plain:
		// Copied: a store's memory is often valid only until its read ends.
		return append(buffer[:0], packed[1:]...), nil
	case framed:
		return c.decoder.DecodeAll(packed[1:], buffer[:0])
	case quick:
		return c.quick.Decode(buffer[:cap(buffer)], packed[1:])
	}

	return nil, errPacked
}

// The dictionaries hold what most values have in common. One never changes, because what
// was packed with it cannot be read with another: a new one gets its own id.
const (
	bodyDictionaryID  = 1
	stateDictionaryID = 2
)

// bodyDictionary holds the members of calls and responses as the SDKs send them, and the
// most common words of English. It makes a body of 4 KB a seventh smaller.
//
//go:embed body.dictionary
var bodyDictionary string

// stateDictionary holds the members of a state.
//
//go:embed state.dictionary
var stateDictionary string
