package badgerdb

import (
	"errors"

	"github.com/dgraph-io/badger/v4"
	"github.com/klauspost/compress/zstd"

	"promptspool/spool/archive"
)

// A packed value begins with two bytes:
//
//	1   version of what is packed: columnVersion or bodyVersion
//	1   how the rest is packed: 0 as it is, 1 zstd
const (
	columnVersion = 1 // of a part of a block; see package blocks
	bodyVersion   = 1

	packedPlain = 0
	packedZstd  = 1
)

var errPacked = errors.New("this version does not write such a value")

// codec packs and unpacks values. It is safe for concurrent use.
type codec struct {
	encoder *zstd.Encoder // of columns
	bodies  *zstd.Encoder // with the dictionary
	decoder *zstd.Decoder
}

// workers bounds how many goroutines pack or unpack at the same time, each with its own
// memory.
const workers = 2

// newCodec returns a codec with the dictionary for bodies.
func newCodec() (*codec, error) {
	dictionary := []byte(archive.BodyDictionary)

	// A small window bounds the memory of an encoder: few values are larger.
	o := []zstd.EOption{
		zstd.WithEncoderConcurrency(workers),
		zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(128 << 10),
	}
	columns, err1 := zstd.NewWriter(nil, o...)
	bodies, err2 := zstd.NewWriter(nil, append(o, zstd.WithEncoderDictRaw(archive.BodyDictionaryID, dictionary))...)

	// One for both: what was packed without the dictionary does not name it.
	decoder, err3 := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(workers),
		zstd.WithDecoderMaxMemory(unpackedMax),
		zstd.WithDecoderDictRaw(archive.BodyDictionaryID, dictionary))

	return &codec{columns, bodies, decoder}, errors.Join(err1, err2, err3)
}

// unpackedMax bounds what one value may unpack to: the largest body. No column is as
// large.
const unpackedMax = 256 << 20

// pack packs a column, unless it would stay larger than a third: what that saves is
// little compared to the bodies (0.5 % of the disk), and unpacking it costs a search a
// third of its time.
func (c *codec) pack(version byte, plain []byte) []byte {
	return pack(c.encoder, version, plain, len(plain)/3)
}

// packBody packs a body. One that is too short to gain stays as it is.
func (c *codec) packBody(plain []byte) []byte { return pack(c.bodies, bodyVersion, plain, len(plain)) }

// pack packs plain if fewer than most bytes result. Otherwise it returns it as it is.
func pack(encoder *zstd.Encoder, version byte, plain []byte, most int) []byte {
	// The two bytes stand in front already, so that nothing has to be copied behind them.
	packed := encoder.EncodeAll(plain, append(make([]byte, 0, len(plain)/2+64), version, packedZstd))
	if len(packed)-2 < most {
		return packed
	}
	return append(append(packed[:0], version, packedPlain), plain...)
}

// unpack returns what pack was given. It uses buffer if that has room.
func (c *codec) unpack(version byte, value, buffer []byte) ([]byte, error) {
	switch {
	case len(value) < 2 || value[0] != version:
		return nil, errPacked
	case value[1] == packedPlain:
		// Copied: Badger's memory is valid only until the read of the value ends.
		return append(buffer[:0], value[2:]...), nil
	case value[1] == packedZstd:
		return c.decoder.DecodeAll(value[2:], buffer[:0])
	}
	return nil, errPacked
}

// read reads and unpacks the value under key, into buffer if that has room.
func (c *codec) read(txn *badger.Txn, version byte, key, buffer []byte) (plain []byte, err error) {
	item, err := txn.Get(key)
	if err == nil {
		err = item.Value(func(value []byte) (err error) {
			plain, err = c.unpack(version, value, buffer)
			return err
		})
	}
	if err != nil {
		return nil, damaged(key, err)
	}
	return plain, nil
}
