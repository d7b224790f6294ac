package proxy

import (
	"encoding/json"

	"github.com/klauspost/compress/zstd"

	"promptspool/spool"
)

// byKey sorts a window into batches of one key each, which keep its order.
func byKey(window []spool.Entry) map[uint32][]spool.Entry {
	batches := map[uint32][]spool.Entry{}
	for _, e := range window {
		batches[e.Key] = append(batches[e.Key], e)
	}
	return batches
}

// newEncoder makes what compress needs; it starts nothing and need not be closed.
func newEncoder() *zstd.Encoder {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic("proxy: zstd options: " + err.Error()) // the options are constants
	}
	return encoder
}

// compress puts the lines of a batch together as they travel.
func compress(encoder *zstd.Encoder, batch []spool.Entry) []byte {
	size := 0
	for _, e := range batch {
		size += len(e.Data)
	}
	plain := make([]byte, 0, size)
	for _, e := range batch {
		plain = append(plain, e.Data...)
	}
	return encoder.EncodeAll(plain, nil)
}

// eventID reads the id of a spooled event; "" if there is none, which no server can name.
func eventID(e spool.Entry) string {
	var event struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(e.Data, &event) != nil {
		return ""
	}
	return event.ID
}
