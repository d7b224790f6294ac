package postgres

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	"promptspool/spool/archive"
)

// A packed value is
//
//	1   packVersion; or packLarge for a state of archive.DeltaMin or more, which may have deltas
//	1   how the rest is packed: 0 not at all, 1 zstd with the dictionary that its frame names
//	n   the rest
const (
	packVersion = 1
	packLarge   = 2
	packedPlain = 0
	packedZstd  = 1
)

// workers bounds the goroutines that pack, and those that unpack, because each needs memory.
const workers = 4

// unpackedMax bounds what one value may unpack to: more than the largest body and the largest state.
const unpackedMax = 256 << 20

// codec packs and unpacks. Safe for concurrent use.
type codec struct {
	bodies   *zstd.Encoder
	states   *zstd.Encoder
	decoder  *zstd.Decoder
	deltaMin int // see archive.DeltaMin
}

func newCodec() (*codec, error) {
	encoder := func(dictionaryID uint32, dictionary string) (*zstd.Encoder, error) {
		return zstd.NewWriter(nil,
			zstd.WithEncoderConcurrency(workers),
			zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithWindowSize(128<<10),
			zstd.WithEncoderDictRaw(dictionaryID, []byte(dictionary)))
	}
	bodies, err1 := encoder(archive.BodyDictionaryID, archive.BodyDictionary)
	states, err2 := encoder(stateDictionaryID, stateDictionary)

	// One for both: each frame names the dictionary that it was packed with.
	decoder, err3 := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(workers),
		zstd.WithDecoderMaxMemory(unpackedMax),
		zstd.WithDecoderDictRaw(archive.BodyDictionaryID, []byte(archive.BodyDictionary)),
		zstd.WithDecoderDictRaw(stateDictionaryID, []byte(stateDictionary)))

	return &codec{bodies, states, decoder, archive.DeltaMin}, errors.Join(err1, err2, err3)
}

func pack(encoder *zstd.Encoder, plain []byte) []byte {
	// The two bytes stand in front already, so that nothing has to be copied behind them.
	packed := encoder.EncodeAll(plain, append(make([]byte, 0, len(plain)/2+64), packVersion, packedZstd))
	if len(packed)-2 < len(plain) {
		return packed
	}
	return append(append(packed[:0], packVersion, packedPlain), plain...)
}

var errPacked = errors.New("it is not packed as this version does")

// unpack returns what was packed, in buffer if there is room.
func (c *codec) unpack(packed, buffer []byte) ([]byte, error) {
	switch {
	case len(packed) < 2 || packed[0] != packVersion && packed[0] != packLarge:
		return nil, errPacked
	case packed[1] == packedPlain:
		// Copied, so that callers may use the buffer again in either case.
		return append(buffer[:0], packed[2:]...), nil
	case packed[1] == packedZstd:
		return c.decoder.DecodeAll(packed[2:], buffer[:0])
	}
	return nil, errPacked
}

// packState packs what is to be written of a state; see archive.Stored.
func (c *codec) packState(s *archive.Stored) (packed []byte, after int, err error) {
	plain, after, err := s.Encode()
	if err != nil {
		return nil, 0, err
	}
	packed = pack(c.states, plain)
	if after == 0 && len(plain) >= c.deltaMin {
		packed[0] = packLarge
	}

	return packed, after, nil
}

// isLarge reports whether a packed state may have deltas.
func isLarge(packed []byte) bool {
	return len(packed) > 0 && packed[0] == packLarge
}

// unpackState unpacks a state, without its deltas.
func (c *codec) unpackState(packed []byte, id uuid) (s archive.Stored, err error) {
	plain, err := c.unpack(packed, nil)
	if err == nil {
		s, err = archive.ReadStored(plain, isLarge(packed))
	}
	if err != nil {
		return archive.Stored{}, damaged("the state of record "+id.String(), err)
	}

	return s, nil
}

// unpackBody unpacks the body of an event and verifies its hash.
func (c *codec) unpackBody(packed []byte, h archive.Entry) ([]byte, error) {
	body, err := c.unpack(packed, nil)
	if err == nil && archive.HashBody(body) != h.Hash {
		err = errors.New("it is not what was stored")
	}
	if err != nil {
		return nil, damaged("the body of event "+h.ID, err)
	}
	return body, nil
}

// damaged returns an internal error for a stored value that cannot be read back. what appears
// in the log only.
func damaged(what string, cause error) error {
	return &wire.Error{
		Code:    wire.CodeInternal,
		Affects: wire.AffectsAccount,
		Message: "A value in the database is damaged; the server's log names it. " +
			"Check the database's disk (pg_amcheck, data checksums), and restore a backup.",
		Cause: fmt.Errorf("%s: %w", what, cause),
	}
}

// stateDictionary is what most states have in common. It must never change: what was packed
// with it cannot be read with another. A new dictionary gets a new id, beside this one.
const (
	stateDictionaryID = 2
	stateDictionary   = `,"group_ids":["cached_tokens":,"cache_write_tokens":,"reasoning_tokens":,` +
		`"error_type":"RATE_LIMIT","tools":["get_","output_shape":"tool_call","json",` +
		`"unreadable":true,"prompt":{"at":"2026-01-01T00:00:00.000Z","id":"019","value":{"name":"",` +
		`"version":1,"label":"production","input_variables":{"":""}}},` +
		`"metadata":{"user_id":{"at":"2026-01-01T00:00:00.000Z","id":"019b","value":""}},` +
		`"kind":"score","kind":"metadata","kind":"group","kind":"prompt",{"request_id":"019a",` +
		`"history":[{"at":"2026-01-01T00:00:00.000000000Z","id":"019a","kind":"request",` +
		`"accepted_at":"2026-01-01T00:00:00.000000000Z",` +
		`"arrived_at":"2026-01-01T00:00:00.000000000Z","sidecar":"host-a","bytes":4,"hash":""}],` +
		`"request":{"at":"2026-01-01T00:00:00.000000000Z","id":"019a",` +
		`"value":{"function_name":"anthropic.messages.create","provider":"anthropic",` +
		`"model":"claude-","function_name":"openai.chat.completions.create","provider":"openai",` +
		`"model":"gpt-4o-2024-08-06","input_tokens":1,"output_tokens":1,"cached_tokens":128,` +
		`"price":0.00,"finish_reason":"stop","turns":2,"output_shape":"plain_text",` +
		`"start":"2026-01-01T00:00:00.000Z","end":"2026-01-01T00:00:00.000Z","status":"SUCCESS",` +
		`"tags":["tag-"],"metadata":{"session":"","session_id":"","user":"user-","user_id":""},` +
		`"prompt":{"name":"template-","version":1}}},` +
		`"scores":{"quality":{"at":"2026-01-01T00:00:00.000Z","id":"019a","value":100}}}`
)

// encode returns a document as it is stored.
func encode(v any) (string, error) {
	document, err := jsonscan.Marshal(v)
	return string(document), err
}
