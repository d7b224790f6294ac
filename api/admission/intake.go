package admission

import (
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	"promptspool/api/edge"
	"promptspool/api/wire"
	"promptspool/metrics"
)

// Anonymous owns the bodies of callers who have not shown a key.
const Anonymous = ""

// smallBodyBytes is the largest capacity of a small body. Nearly all writes, fetches and pages are
// small.
const smallBodyBytes = 64 << 10

// Config bounds what an Intake holds at the same time.
type Config struct {
	BodyBytesMax int64 // of one body, as sent and unpacked
	BufferBytes  int64 // of all bodies; beyond it 503
	BatchBytes   int64 // of all batches, shared between keys; beyond it 429 or 503
	Metrics      *metrics.Metrics
}

// Intake reads bodies and batches. Safe for concurrent use.
type Intake struct {
	bodies     *Pool // bytes
	believes   bool  // the announced length of a body from any caller
	batches    *Pool // bytes
	batchRetry RetryAfter
	metrics    *metrics.Metrics
}

// New makes an Intake that holds nothing yet.
func New(c Config) *Intake {
	in := &Intake{metrics: c.Metrics, batches: NewPool(Rules{
		Size:  c.BatchBytes,
		Share: LeftOver,
		Watch: func(more int64) { c.Metrics.BatchBytes.Add(float64(more)) },
	})}
	in.bodies, in.believes = newBodyPool(c.BufferBytes, c.BodyBytesMax)

	return in
}

// newBodyPool bounds the bytes of all bodies held at the same time, so that many large uploads
// meet a 503 and not the kernel's out-of-memory killer:
//
//   - an eighth is left for small bodies;
//   - the larger bodies of one key may take a half, and those of all anonymous callers a
//     quarter; or the space of one body of the largest size, where that is more.
//
// A sidecar's pool has not even space for three of the largest bodies, and is too small for
// shares: the beginnings of several bodies of one key would keep each of them from being
// completed. Its callers are the apps beside it. Their keys are not known while the server is
// away, and the lengths that they announce are believed nevertheless.
func newBodyPool(bytes, bodyBytesMax int64) (pool *Pool, believes bool) {
	one := min(bytes, bodyBytesMax+1)
	ofKey, ofAnonymous := max(bytes/2, one), max(bytes/4, one)
	believes = bytes < 3*one
	if believes {
		ofKey, ofAnonymous = bytes, bytes
	}

	pool = NewPool(Rules{
		Size: bytes,
		Share: func(owner string, _, _ int64) int64 {
			if owner == Anonymous {
				return ofAnonymous
			}
			return ofKey
		},
		SmallMax:  smallBodyBytes,
		SmallSize: bytes / 8,
	})
	return pool, believes
}

// Read reads a request's body, unpacked. The caller must release it. max bounds the body both
// before and after unpacking. For identify see Body.
//
// Its errors are 413, 415, 400, 408 and 503, and those of identify. After it has returned a
// body, the connection is not cut until the request is answered.
func (in *Intake) Read(
	ctx *fasthttp.RequestCtx, max int64, identify func() (owner string, err error),
) (*Body, error) {
	encoding, err := Encoding(ctx, max)
	if err != nil {
		return nil, err
	}

	b := bodyPool.Get().(*Body)
	b.claim = in.bodies.Claim(Anonymous)
	b.refuse = refuseBody
	b.identify = identify
	b.believed = in.believes
	b.open(ctx, max, true)

	// The announced length is that of the packed bytes, so it predicts nothing about how much
	// there is to read.
	b.packed = encoding != ""
	if b.packed {
		b.declared = 0
	}

	if err := b.read(encoding, max); err != nil {
		b.Release()
		return nil, readError(encoding, err)
	}
	edge.Answering(ctx.Conn())

	return b, nil
}

// ClaimBeside claims memory for something that is made of a body, in the name of the key that
// sent it. The caller must call release. Its error is an answer.
func (in *Intake) ClaimBeside(owner string, bytes int64) (release func(), err error) {
	claim := in.bodies.Claim(owner)
	if err := claim.Resize(bytes); err != nil {
		return nil, refuseBody(err)
	}
	return claim.Release, nil
}

func refuseBody(error) error {
	return wire.Unavailable(time.Second,
		"Too many large bodies are being received right now. Send this again in a second.")
}

func (in *Intake) refuseBatch(err error) error {
	if errors.Is(err, ErrShare) {
		in.metrics.Shed.WithLabelValues("share").Inc()
		return &wire.Error{
			Code:       wire.CodeTooMany,
			RetryAfter: in.batchRetry.Next(),
			Message: "This key's batches already use its fair share of the server's memory. " +
				"Retry after the time in Retry-After, and send fewer batches at the same time.",
		}
	}

	in.metrics.Shed.WithLabelValues("bytes").Inc()

	return wire.Unavailable(in.batchRetry.Next(),
		"The server is overloaded: its memory for batches is full. Retry after the time in Retry-After.")
}

func tooLarge(max int64) error {
	return wire.Errorf(wire.CodeTooLarge, "The body is larger than %d bytes. Send less in one request: "+
		"store large attachments elsewhere, and put a link in the metadata.", max)
}
