package proxy

import (
	"sync/atomic"

	"promptspool/api/wire"
)

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
