package postgres

import (
	"errors"
	"fmt"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/compress"
)

// workers bounds the goroutines that pack, and those that unpack.
const workers = 4

// codec packs and unpacks. Safe for concurrent use.
type codec struct {
	*compress.Codec
	deltaMin int // see archive.DeltaMin
}

func newCodec() (*codec, error) {
	c, err := compress.New(workers)
	return &codec{c, archive.DeltaMin}, err
}

// packState packs what is to be written of a state; see archive.Stored.
func (c *codec) packState(s *archive.Stored) (packed []byte, after int, err error) {
	plain, after, err := s.Encode()
	if err != nil {
		return nil, 0, err
	}
	packed = c.State(plain)
	if after == 0 && len(plain) >= c.deltaMin {
		packed[0] |= compress.Mark // it may have deltas
	}

	return packed, after, nil
}

// isLarge reports whether a packed state may have deltas.
func isLarge(packed []byte) bool { return len(packed) > 0 && packed[0]&compress.Mark != 0 }

// unpackState unpacks a state, without its deltas.
func (c *codec) unpackState(packed []byte, id uuid) (s archive.Stored, err error) {
	plain, err := c.Unpack(packed, nil)
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
	body, err := c.Unpack(packed, nil)
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
