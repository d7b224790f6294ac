package registry

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"

	"promptspool/api/wire"
	"promptspool/registry/render"
)

// packer compresses templates: a sidecar may hold thousands, while an app uses a few. A
// template of 2 KB shrinks to half, and takes about 50 us to unpack. Safe for concurrent
// use.
type packer struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

func newPacker() (packer, error) {
	// Both live as long as the sidecar, so they get as
	// little memory as they can do with (G6).
	encoder, err := zstd.NewWriter(nil,
		zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(64<<10),
		zstd.WithLowerEncoderMem(true))
	if err != nil {
		return packer{}, err
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))

	return packer{encoder, decoder}, err
}

func (p packer) pack(raw *wire.RawTemplate) []byte {
	return slices.Clone(p.encoder.EncodeAll(encodeJSON(raw), nil)) // without spare capacity
}

func (p packer) unpack(text []byte) (*wire.RawTemplate, error) {
	// The checksum of the frame makes damage an error instead of a wrong text.
	text, err := p.decoder.DecodeAll(text, nil)
	var raw wire.RawTemplate
	if err == nil {
		err = json.Unmarshal(text, &raw)
	}
	if err != nil {
		return nil, fmt.Errorf("a template in the cache was damaged in memory: %w", err)
	}

	return &raw, nil
}

// opened is a template in use: unpacked, with its texts parsed. It never changes.
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
