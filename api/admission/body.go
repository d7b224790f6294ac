package admission

import (
	"bytes"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"promptspool/api/edge"
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// Body holds the bytes of one body. Its capacity stays claimed until Release.
type Body struct {
	Bytes []byte // unpacked

	claim  Claim                 // anonymous until the request has shown a key
	refuse func(err error) error // makes the answer when the claim gets no more

	// identify returns the id of the key in the request's head, or Anonymous if there is none. It
	// is called before a large body is read, and nil afterwards.
	identify func() (owner string, err error)
	trusted  bool  // the caller has shown a key, so the announced length is believed
	believed bool  // the announced length is believed in any case
	packed   bool  // the bytes are unpacked while they are read
	declared int64 // the announced length of a body that is not packed; else 0 or less

	sent   sentReader
	taken  bool        // the bytes belong to the caller after Release
	object wire.Object // the last parsed object; its memory is reused for the next body
}

const (
	pooledBytesMax  = 64 << 10 // larger buffers are left to the garbage collector
	pooledMembers   = 32       // and so are objects with more members
	pooledNameBytes = 64       // and longer names of members
	largeBytes      = 4 << 20  // what is larger goes back to the system immediately
)

var bodyPool = sync.Pool{New: func() any { return new(Body) }}

// Take leaves the bytes to the caller: Release does not reuse them.
func (b *Body) Take() { b.taken = true }

// TakeBack undoes Take: the bytes are no longer needed.
func (b *Body) TakeBack() { b.taken = false }

// Release gives the memory back. Neither Bytes, unless they were taken, nor a parsed object may
// be used afterwards.
func (b *Body) Release() {
	b.poolObject()

	b.Bytes = b.Bytes[:0]
	if b.taken || cap(b.Bytes) > pooledBytesMax {
		b.taken, b.Bytes = false, nil
	}
	b.sent, b.identify, b.trusted = sentReader{}, nil, false

	// The memory must be free when its claim is: another large body may come immediately, and
	// the garbage collector would start too late for it.
	if b.claim.Held() > largeBytes {
		debug.FreeOSMemory()
	}
	b.claim.Release()
	bodyPool.Put(b)
}

// Parse returns the JSON object that the body is. Its members alias Bytes.
func (b *Body) Parse() (wire.Object, error) {
	object, err := b.object.Parse(b.Bytes)
	b.object = object
	return object, err
}

// ParseOptional returns nil for a body that is empty, white space or null, else what Parse does.
func (b *Body) ParseOptional() (wire.Object, error) {
	object, err := b.object.ParseOptional(b.Bytes)
	if object != nil || err != nil {
		// Else the memory of an earlier one stays for the next body.
		b.object = object
	}
	return object, err
}

// poolObject keeps the memory of the parsed object for the next body.
func (b *Body) poolObject() {
	if cap(b.object) > pooledMembers {
		b.object = nil
		return
	}

	// The values alias bytes that are no longer ours. The names are copies, and are kept because
	// most bodies have the same.
	for i := range b.object {
		name := b.object[i].Name
		if len(name) > pooledNameBytes {
			name = ""
		}
		b.object[i] = jsonscan.Member{Name: name}
	}
	b.object = b.object[:0]
}

// open prepares to read the body of a request, which is at most max bytes as it is sent.
func (b *Body) open(ctx *fasthttp.RequestCtx, max int64, paced bool) {
	b.declared = int64(ctx.Request.Header.ContentLength())
	b.sent = sentReader{ctx: ctx, r: ctx.RequestBodyStream(), max: max, paced: paced}
	if b.sent.r == nil {
		b.sent.r = bytes.NewReader(nil)
	}
}

// read reads the body to its end and unpacks it; at most max bytes.
func (b *Body) read(encoding string, max int64) error {
	// A decoder takes memory, too, so nothing is made before the first claim.
	if err := b.reserve(max); err != nil {
		return err
	}

	r, release, err := unpack(encoding, &b.sent, false)
	defer release()
	if err != nil {
		return err
	}

	return b.fill(r, max)
}

// fill reads r to its end; at most max bytes.
func (b *Body) fill(r io.Reader, max int64) error {
	for {
		if err := b.reserve(max); err != nil {
			return err
		}

		n, err := r.Read(b.Bytes[len(b.Bytes):cap(b.Bytes)])
		b.Bytes = b.Bytes[:len(b.Bytes)+n]
		if int64(len(b.Bytes)) > max {
			return tooLarge(max)
		}

		if err == io.EOF {
			// With fewer bytes than announced, the connection cannot serve another request: what
			// comes next might still belong to this body.
			if b.declared > b.sent.n {
				b.sent.ctx.SetConnectionClose()
				return io.ErrUnexpectedEOF
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// trustedBytes is how much of a body must have come before its announced length is believed, and
// how much of one is read before its caller must show a key.
const trustedBytes = 1 << 20

// reserve claims memory for the next read.
func (b *Body) reserve(bytesMax int64) error {
	if max(int64(len(b.Bytes)), b.declared) >= trustedBytes && b.identify != nil {
		if err := b.identifyCaller(); err != nil {
			return err
		}
	}

	// A large body that does not fit now is refused before anything is made for it. When many come
	// together, the collector would not keep up with the beginnings of those that are refused.
	if b.claim.Held() == 0 && b.declared >= trustedBytes {
		if err := b.claim.Check(b.declared + 1); err != nil {
			return b.refuse(err)
		}
	}

	// A few packed bytes become many. Without a key their sender costs us more than it pays.
	if b.packed && !b.trusted && len(b.Bytes) >= trustedBytes {
		return wire.Errorf(wire.CodeUnauthorized,
			"A packed body of more than %d MiB needs its key in the header X-API-KEY.", trustedBytes>>20)
	}

	size := b.nextCap(bytesMax)
	if size > b.claim.Held() {
		if err := b.claim.Resize(size); err != nil {
			return b.refuse(err)
		}
	}
	if size > int64(cap(b.Bytes)) {
		b.grow(size)
	}

	return nil
}

// grow gives the body a larger capacity. In the small pool of a sidecar, the smaller
// buffer, which no claim counts any more, must not wait for the collector. A server has
// the space, and a collection costs it more.
func (b *Body) grow(size int64) {
	before := cap(b.Bytes)
	b.Bytes = append(make([]byte, 0, size), b.Bytes...)

	if b.believed && before >= largeBytes {
		debug.FreeOSMemory()
	}
}

// nextCap returns the capacity that the next read needs.
func (b *Body) nextCap(bytesMax int64) int64 {
	if len(b.Bytes) < cap(b.Bytes) {
		return int64(cap(b.Bytes))
	}

	// The capacity doubles: a client that only announces a large body must not hold the memory
	// for it. Once a part of the body has come, and its announced length is believed, there is
	// memory for all of it. So large bodies that come together are completed one by one, instead
	// of blocking each other with halves.
	// One byte is to read beyond the end.
	size := min(max(8<<10, 2*int64(cap(b.Bytes))), bytesMax+1)
	whole := b.declared + 1
	believed := (b.trusted || b.believed) && len(b.Bytes) >= trustedBytes
	if b.declared > int64(len(b.Bytes)) && (believed || whole < size) {
		return whole
	}

	// While a buffer is copied into a larger one, there are both. They are never two of the
	// largest in the small pool of a sidecar.
	if b.believed && cap(b.Bytes) >= 2*largeBytes {
		return bytesMax + 1
	}

	return size
}

// identifyCaller asks once for the caller's key, which becomes the owner of the claim.
func (b *Body) identifyCaller() error {
	owner, err := b.identify()
	b.identify = nil
	if err != nil {
		return err
	}

	b.claim.Pass(owner)
	b.trusted = owner != Anonymous

	return nil
}

// Once a body is larger than a small one, each further PaceBytes of it must arrive within
// PaceTime.
const (
	PaceBytes = 512 << 10
	PaceTime  = 5 * time.Second
)

// sentReader reads a body as it was sent. It counts the bytes, and rejects more than max, or
// fewer than the pace demands.
//
// When a body breaks off, it closes the connection: fasthttp would look for the next chunk
// after one that is damaged, and for the next request after that.
type sentReader struct {
	ctx    *fasthttp.RequestCtx
	r      io.Reader
	n, max int64
	paced  bool
	next   int64 // the byte at which the next interval begins; 0 if none has begun
}

// Read reads the next bytes of the body.
func (s *sentReader) Read(p []byte) (int, error) {
	if s.paced && s.n >= max(s.next, smallBodyBytes) {
		s.next = s.n + PaceBytes
		edge.Within(s.ctx.Conn(), PaceTime)
	}

	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.ctx.SetConnectionClose()
	}

	s.n += int64(n)
	if s.n > s.max {
		return n, tooLarge(s.max)
	}

	return n, err
}

// drainBytesMax is how much of an unwanted body is read and thrown away.
const drainBytesMax = wire.BodyBytesMax + (32 << 20)

// Drain reads the rest of a body and throws it away. A client that is still sending would not
// read its answer otherwise.
func Drain(ctx *fasthttp.RequestCtx) {
	stream := ctx.RequestBodyStream()
	if stream == nil {
		return
	}

	// The time for the body may be over already.
	edge.Within(ctx.Conn(), PaceTime)

	// Beyond the bound the connection is closed, because the rest of the body would be taken for
	// the next request.
	rest := &sentReader{ctx: ctx, r: stream, max: drainBytesMax, paced: true}
	if n, err := io.CopyN(io.Discard, rest, drainBytesMax); err != io.EOF || n == drainBytesMax {
		ctx.SetConnectionClose()
	}
}
