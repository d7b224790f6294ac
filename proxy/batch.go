package proxy

import (
	"bytes"
	"encoding/json"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"

	"promptspool/api/wire"
	"promptspool/spool/queue"
)

// batch is what goes out together: events of one key, in order.
type batch struct {
	key        uint32
	events     []queue.Entry
	bytes      int
	holdReason string // why these go to the held lane unsent; "" to send them
	alone      bool   // the last attempt for this key failed while others were answered, see delivery.send
}

func (b *batch) add(e queue.Entry) {
	b.events = append(b.events, e)
	b.bytes += len(e.Data)
}

// part is a batch of some of the events.
func (b *batch) part(events []queue.Entry) *batch {
	return &batch{key: b.key, events: events, bytes: bytesOf(events), alone: b.alone}
}

func bytesOf(events []queue.Entry) (bytes int) {
	for _, e := range events {
		bytes += len(e.Data)
	}
	return bytes
}

// encoders are as many as may compress at the same time. That is half of the processors:
// while a backlog is drained, the app's writes need some as well.
type encoders chan *zstd.Encoder

func newEncoders() encoders {
	n := max(1, min(runtime.GOMAXPROCS(0)/2, inFlightMax))
	free := make(encoders, n)
	for range n {
		free <- newEncoder()
	}
	return free
}

// compress returns the lines of a batch as they travel, at the pace of p. The result
// is the caller's.
func (free encoders) compress(b *batch, p *pacer) []byte {
	encoder := <-free
	defer func() { free <- encoder }()

	// A third is what remains of text, so that the buffer mostly grows no more.
	out := bytes.NewBuffer(make([]byte, 0, b.bytes/3+1<<10))
	encoder.Reset(out)
	begun := time.Now()
	for _, e := range b.events {
		// A buffer takes everything.
		_, _ = encoder.Write(e.Data)
		begun = p.rest(begun)
	}
	_ = encoder.Close()

	return out.Bytes()
}

// compressBytesMax is the size of a batch above which it is compressed while it is
// sent, so that a large event is in memory once. Then nothing is compressed while the
// server is away.
const compressBytesMax = wire.BatchBytesMax

// batchReader gives a batch compressed, bit by bit. It has one owner.
type batchReader struct {
	encoder *zstd.Encoder
	packed  bytes.Buffer  // what is compressed and was not read
	rest    []queue.Entry // the first one as far as it is not compressed
	ended   bool
}

func newBatchReader(b *batch) *batchReader {
	r := &batchReader{encoder: newEncoder(), rest: slices.Clone(b.events)}
	r.encoder.Reset(&r.packed)
	return r
}

// packingStep is how much is compressed in one go.
const packingStep = 256 << 10

// Read compresses more events when what is compressed was read.
func (r *batchReader) Read(p []byte) (int, error) {
	for r.packed.Len() == 0 && !r.ended {
		if len(r.rest) == 0 {
			r.ended = true
			// A buffer takes everything.
			_ = r.encoder.Close()
			break
		}

		// A step at a time: a large event compressed as a whole would be in memory twice.
		n := min(len(r.rest[0].Data), packingStep)
		_, _ = r.encoder.Write(r.rest[0].Data[:n])
		r.rest[0].Data = r.rest[0].Data[n:]
		if len(r.rest[0].Data) == 0 {
			r.rest = r.rest[1:]
		}
	}

	return r.packed.Read(p)
}

// newEncoder makes an encoder that starts no goroutine and need not be closed. The server
// bounds its window at 1 MiB. Of English text in events of 4 KB there remain, at the
// levels fastest, default and better, 0.32, 0.30 and 0.28, at 210, 150 and 120 MB/s.
func newEncoder() *zstd.Encoder {
	encoder, err := zstd.NewWriter(nil,
		zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(1<<20),
		zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithLowerEncoderMem(true),
	)
	if err != nil {
		// The options are constants.
		panic("proxy: zstd options: " + err.Error())
	}

	return encoder
}

// eventID reads the id of a spooled event; "" if there is none, which no server can name.
func eventID(e queue.Entry) string {
	var event struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(e.Data, &event) != nil {
		return ""
	}
	return event.ID
}

const (
	batchBytesMax = 1 << 20 // of a batch before compression; one larger event travels alone
	boundGrowth   = 64      // a batch that passes lets the bound grow by one part in so many
)

// bound is how large a batch may be. A proxy in front of the server that refuses a size
// halves it. Every batch of about that size that passes lets it grow a little. So a
// limit that was lifted is found out, and one that stays costs a batch in some sixty.
// Safe for concurrent use.
type bound struct{ bytes atomic.Int64 }

func newBound() *bound {
	b := new(bound)
	b.bytes.Store(batchBytesMax)
	return b
}

func (b *bound) get() int { return int(b.bytes.Load()) }

// refused notes that a batch of so many bytes was too large.
func (b *bound) refused(bytes int) {
	b.bytes.Store(max(1, min(b.bytes.Load(), int64(bytes)/2)))
}

// passed notes that a batch of so many bytes was not too large.
func (b *bound) passed(bytes int) {
	now := b.bytes.Load()
	if now < batchBytesMax && int64(bytes) > now/2 {
		b.bytes.Store(min(batchBytesMax, now+max(1, now/boundGrowth)))
	}
}

// fits reports whether one more event may join a batch of so many events and bytes.
func (b *bound) fits(events, bytes, more int) bool {
	return events == 0 || events < wire.BatchEventsMax && bytes+more <= b.get()
}
