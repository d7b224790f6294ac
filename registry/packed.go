package registry

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"

	"promptspool/api/wire"
	"promptspool/registry/render"
)

// packer packs templates: of the thousands that a sidecar may hold an app uses a few at a time. A wire.RawTemplate of 2 KB takes half of
// that packed, and some 50 us to be unpacked. Safe for concurrent use.
type packer struct {
	in  *zstd.Encoder
	out *zstd.Decoder
}

func newPacker() (packer, error) {
	in, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(64<<10), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return packer{}, err
	}
	out, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	return packer{in, out}, err
}

func (p packer) pack(raw *wire.RawTemplate) []byte {
	return slices.Clone(p.in.EncodeAll(encodeJSON(raw), nil)) // without the room behind
}

func (p packer) unpack(text []byte) (*wire.RawTemplate, error) {
	text, err := p.out.DecodeAll(text, nil)
	var raw wire.RawTemplate
	if err == nil {
		err = json.Unmarshal(text, &raw)
	}
	if err != nil {
		return nil, fmt.Errorf("a template in the cache was damaged in memory: %w", err)
	}
	return &raw, nil
}

// opened is a packed template as it is used, with its texts parsed. It never changes.
type opened struct {
	raw      *wire.RawTemplate
	prepared *render.Prepared
}

func open(raw *wire.RawTemplate) (*opened, error) {
	p, err := render.Prepare(raw.Blueprint, raw.Metadata)
	if err != nil {
		return nil, err
	}
	return &opened{raw, p}, nil
}
