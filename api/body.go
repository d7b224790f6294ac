package api

import (
	"bytes"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"

	"promptspool/api/admission"
	"promptspool/api/edge"
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// body holds the bytes of one body. Its capacity is claimed while it is in use.
type body struct {
	bytes  []byte
	claim  admission.Claim       // a stranger's, until the call has shown a key
	refuse func(err error) error // the answer where the claim gets no more

	// prove has the caller show a key in the call's head, and returns the key's id, or stranger
	// if there is none. It is called before a large body is read; nil once it was.
	prove    func() (owner string, err error)
	trusted  bool  // so the announced length is believed once a part has come
	packed   bool  // what is read is unpacked on its way
	declared int64 // the length that the client announced, of a body that is sent as it is; else 0 or less

	sent    counter
	given   bool        // the bytes are somebody else's after the call
	members wire.Object // room for the members of the object that it is
}

const (
	pooledBytesMax  = 64 << 10                       // a larger buffer is left to the garbage collector
	pooledMembers   = 32                             // and so is room for more members
	pooledNameBytes = 64                             // and a longer name of one
	largeBytes      = 4 << 20                        // what is larger goes back to the system immediately
	drainBytesMax   = wire.BodyBytesMax + (32 << 20) // how much of an unwanted body is read and thrown away
)

var bodyPool = sync.Pool{New: func() any { return new(body) }}

// release gives the bytes back. They must not be used any more, unless they were given away.
func (b *body) release() {
	b.bytes, b.sent, b.prove, b.trusted = b.bytes[:0], counter{}, nil, false
	if b.given || cap(b.bytes) > pooledBytesMax {
		b.given, b.bytes = false, nil
	}

	if b.claim.Held() > largeBytes {
		debug.FreeOSMemory() // before the next one comes: the collector would start too late for it
	}
	b.claim.Release()
	bodyPool.Put(b)
}

// keep keeps the memory of an object's members for the next body, with their names: most bodies
// have the same.
func (b *body) keep(object wire.Object) {
	if object == nil || cap(object) > pooledMembers {
		return
	}

	for i := range object {
		name := object[i].Name
		if len(name) > pooledNameBytes {
			name = ""
		}
		object[i] = jsonscan.Member{Name: name}
	}
	b.members = object[:0]
}

// fill reads r to its end; at most max bytes.
func (b *body) fill(r io.Reader, max int64) error {
	for {
		if err := b.reserve(max); err != nil {
			return err
		}

		n, err := r.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		if int64(len(b.bytes)) > max {
			return tooLarge(max)
		}

		if err == io.EOF {
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
// how much of one is read before its caller is asked for a key.
const trustedBytes = 1 << 20

// reserve claims memory for the next read.
func (b *body) reserve(bytesMax int64) error {
	if max(int64(len(b.bytes)), b.declared) >= trustedBytes && b.prove != nil {
		if err := b.meet(); err != nil {
			return err
		}
	}
	if b.packed && !b.trusted && len(b.bytes) >= trustedBytes {
		return wire.Errorf(wire.CodeUnauthorized,
			"A packed body of more than %d MiB needs its key in the header X-API-KEY.", trustedBytes>>20)
	}

	// What there is doubles: a client that only announces a large body must not hold the memory for
	// it. Once a part of it has come, and the caller's key is known, there is memory for all of it.
	// So large bodies that come together get through one by one, instead of blocking each other with
	// halves.
	size := int64(cap(b.bytes))
	if len(b.bytes) == cap(b.bytes) {
		size = min(max(8<<10, 2*size), bytesMax+1) // one byte is to read beyond the end
		whole := b.declared + 1
		trusted := b.trusted && len(b.bytes) >= trustedBytes
		if b.declared > int64(len(b.bytes)) && (trusted || whole < size) {
			size = whole
		}
	}

	if size > b.claim.Held() {
		if err := b.claim.Resize(size); err != nil {
			return b.refuse(err)
		}
	}
	if size > int64(cap(b.bytes)) {
		b.bytes = append(make([]byte, 0, size), b.bytes...)
	}

	return nil
}

// meet has the caller show a key.
func (b *body) meet() error {
	owner, err := b.prove()
	b.prove = nil
	if err == nil {
		b.claim.Pass(owner)
		b.trusted = owner != stranger
	}

	return err
}

func tooLarge(max int64) error {
	return wire.Errorf(wire.CodeTooLarge, "The body is larger than %d bytes. Send less in one request; "+
		"large attachments belong elsewhere, with a link in the metadata.", max)
}

// readBody reads a call's body, unpacked, into a buffer that the caller releases. The bound holds
// before and after unpacking. prove has the caller show a key; see body. Its errors are 413, 415,
// 400, 408 and 503, and those of prove. From then on the connection is not cut.
func (a *API) readBody(ctx *fasthttp.RequestCtx, max int64, prove func() (string, error)) (*body, error) {
	encoding, err := encodingOf(ctx, max)
	if err != nil {
		return nil, err
	}

	b := bodyPool.Get().(*body)
	b.claim, b.refuse, b.prove = a.bodies.Claim(stranger), refuseBody, prove
	b.open(ctx, max, true)
	b.packed = encoding != ""
	if b.packed {
		b.declared = 0
	}

	if err := b.read(encoding, max); err != nil {
		b.release()
		return nil, unreadable(encoding, err)
	}
	edge.Answering(ctx.Conn())

	return b, nil
}

// open begins with the body of a call, which is at most max bytes as it is sent.
func (b *body) open(ctx *fasthttp.RequestCtx, max int64, paced bool) {
	b.declared = int64(ctx.Request.Header.ContentLength())
	b.sent = counter{ctx: ctx, r: ctx.RequestBodyStream(), max: max, paced: paced}
	if b.sent.r == nil {
		b.sent.r = bytes.NewReader(nil)
	}
}

func refuseBody(error) error {
	return wire.Unavailable(time.Second,
		"Too many large bodies are being received right now. Send this again in a second.")
}

// read reads b.sent to its end, unpacked; at most max bytes.
func (b *body) read(encoding string, max int64) error {
	if err := b.reserve(max); err != nil { // a decoder takes memory, too
		return err
	}

	r, err := unpack(encoding, &b.sent, newZstdDecoder)
	if d, ok := r.(*zstd.Decoder); ok {
		defer d.Close()
	}
	if err != nil {
		return err
	}

	return b.fill(r, max)
}

// counter counts what was read of a body, and rejects what is larger than max, or stops coming.
// When a body breaks off, the connection is closed: fasthttp would look for the next chunk behind
// one that is damaged, and for the next request behind that.
type counter struct {
	ctx    *fasthttp.RequestCtx
	r      io.Reader
	n, max int64
	paced  bool  // what comes must keep pace
	next   int64 // bytes at which its next stretch begins; 0: none has begun
}

// Once a body holds more than a small one may, each further paceBytes of it must come within paceTime.
const (
	paceBytes = 512 << 10
	paceTime  = 5 * time.Second
)

func (c *counter) Read(p []byte) (int, error) {
	if c.paced && c.n >= max(c.next, smallBytes) {
		c.next = c.n + paceBytes
		edge.Within(c.ctx.Conn(), paceTime)
	}

	n, err := c.r.Read(p)
	if err != nil && err != io.EOF {
		c.ctx.SetConnectionClose()
	}
	if c.n += int64(n); c.n > c.max {
		return n, tooLarge(c.max)
	}

	return n, err
}

// drain reads what is left of a body and throws it away, so that a client that is still sending
// gets to read its answer. What is beyond the bound closes the connection: its rest would be taken
// for the next request.
func drain(ctx *fasthttp.RequestCtx) {
	stream := ctx.RequestBodyStream()
	if stream == nil {
		return
	}

	edge.Within(ctx.Conn(), paceTime) // what was left for the body may be over
	rest := &counter{ctx: ctx, r: stream, max: drainBytesMax, paced: true}
	if n, err := io.CopyN(io.Discard, rest, drainBytesMax); err != io.EOF || n == drainBytesMax {
		ctx.SetConnectionClose()
	}
}
