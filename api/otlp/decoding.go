package otlp

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"

	"promptspool/api/wire"
)

// signal is what the requests of one path carry.
type signal struct {
	request, resources, scopes layout[group]

	item func(v value) (item, error) // its errors concern this item only
}

// signalOf returns the signal whose scopes list their items as items, and whose resources list
// their scopes as scopes. Old versions called scopes instrumentation libraries.
func signalOf(resources, scopes, oldScopes, items string, read func(v value) (item, error)) signal {
	return signal{
		request: layout[group]{listed(1, resources)},
		resources: layout[group]{
			headed("resource", resourceLayout), listed(2, scopes), schemaURL, listed(2, oldScopes),
		},
		scopes: layout[group]{
			headed("scope", scopeLayout), listed(2, items), schemaURL,
			headed("instrumentationLibrary", scopeLayout),
		},
		item: read,
	}
}

// item is a span or a log record whose members were found, but not read.
type item interface {
	write(o *output) // after its scope; the output's fault concerns this item only
	check() error    // why it cannot be kept
	close(o *output) // closes the body
}

// decoding is one call of Traces, Logs or Bulk.
type decoding struct {
	ctx     context.Context
	signal  *signal
	keep    func(it item, written []byte) item // returns what an item is kept as, nil if it is not; nil keeps all
	take    func(it item, body []byte) error
	refused Refused
	items   int // that were met
	groups  int // the same, of resources and scopes
	left    int // bytes that bodies may still have together

	out      output
	small    *[outputBytes]byte // with which out begins
	resource *head              // what out begins with
	scope    *head
	behind   struct{ resource, scope int } // where they end
	tooLong  struct{ resource, scope bool }
}

// smalls are the outputs of most requests.
var smalls = sync.Pool{New: func() any { return new([outputBytes]byte) }}

// newDecoding returns the decoding of a request of so many bytes. The caller must call done.
func newDecoding(ctx context.Context, size int) *decoding {
	small := smalls.Get().(*[outputBytes]byte)
	return &decoding{
		ctx:   ctx,
		left:  repeatedBytes + repeatedMax*size,
		small: small,
		out:   output{b: small[:0]},
	}
}

// done leaves the small output to another request. A larger one is not kept.
func (d *decoding) done() { smalls.Put(d.small) }

// decode reads a request.
func decode(body []byte, form Form, d *decoding) (Refused, error) {
	defer d.done()

	request := value{field: field{bytes: body}}
	if form == JSON {
		var err error
		request, err = jsonRequest(body)
		if err != nil {
			return Refused{}, err
		}
	}

	err := d.request(request)
	// A fault of the request itself, rather than one of what takes its items.
	if errors.Is(err, errProtobuf) || errors.Is(err, errDeep) {
		err = fmt.Errorf("%w: %w", ErrMalformed, err)
	}

	return d.refused, err
}

// group is a request, the items of a resource, or those of a scope.
type group struct {
	head  head
	parts value // a list of groups or of items
}

// schemaURL is the member of a group with the schema of its head.
var schemaURL = set(3, "schemaUrl", func(g *group, v value) { g.head.schemaURL = v.text() })

// headed returns the member of a group with its head.
func headed(name string, l layout[head]) member[group] {
	return member[group]{1, name, func(g *group, v value) error { return l.read(&g.head, v) }}
}

// listed returns the member of a group with its parts.
func listed(number protowire.Number, name string) member[group] {
	return set(number, name, func(g *group, v value) { g.parts = v })
}

// request reads a request, such as an ExportTraceServiceRequest. The head of each group is read first:
// nothing says that it precedes its parts.
func (d *decoding) request(v value) error {
	var request group
	if err := d.signal.request.read(&request, v); err != nil {
		return err
	}

	return request.parts.elements(func(v value) error {
		if read, err := d.next(&d.groups, groupsMax); !read {
			return err
		}
		var resource group
		if err := d.signal.resources.read(&resource, v); err != nil {
			return err
		}
		return resource.parts.elements(func(v value) error { return d.scoped(&resource.head, v) })
	})
}

// scoped reads a ScopeSpans or the like.
func (d *decoding) scoped(resource *head, v value) error {
	if read, err := d.next(&d.groups, groupsMax); !read {
		return err
	}
	var scope group
	if err := d.signal.scopes.read(&scope, v); err != nil {
		return err
	}

	began := false
	return scope.parts.elements(func(v value) error {
		if read, err := d.next(&d.items, ItemsMax); !read {
			return err
		}
		if !began {
			if err := d.begin(resource, &scope.head); err != nil {
				return err
			}
			began = true
		}

		// An error of the item goes with it: the next one may be whole.
		it, err := d.signal.item(v)
		return d.add(it, err)
	})
}

// ItemsMax is how many spans or log records of a request are read.
const ItemsMax = 50_000

// groupsMax is how many resources and scopes of a request are read: enough for items of which
// each has its own. Those without any cost time as well.
const groupsMax = 2 * ItemsMax

// checkEvery is how many items or groups are met between looks at the context.
const checkEvery = 1000

// These bound the repetition of resources and scopes: all bodies together have at most so many
// times the bytes of the request, and so many bytes besides. That is enough for 512 small spans,
// as many as exporters send by default, with a resource of 6 KiB.
const (
	repeatedMax   = 16
	repeatedBytes = 4 << 20
)

// headBytesMax bounds a resource with its scope, as JSON.
const headBytesMax = 4 << 20

// levelsMax is how deep a value may nest. The body is never too deep for other readers then.
const levelsMax = 100

// Why a span is refused.
var (
	errMany     = fmt.Errorf("only the first %d of a request are read; send the rest in another one", ItemsMax)
	errDeep     = fmt.Errorf("a value is nested deeper than %d", levelsMax)
	errHead     = fmt.Errorf("resource and scope are larger than %d bytes as JSON", headBytesMax)
	errLarge    = fmt.Errorf("it is larger than %d bytes as JSON with its resource", wire.BodyBytesMax)
	errTooLarge = errors.New("resource and scope are too large to be kept with each of so many spans; " +
		"send fewer spans in a request")
	errTrace = errors.New("traceId must be 16 bytes, not all zero")
	errSpan  = errors.New("spanId must be 8 bytes, not all zero")
)

// next counts an item or a group, and reports whether it is read: at most so many are. It refuses one
// too many, which costs next to nothing. Its error is that of a request that has ended.
func (d *decoding) next(count *int, most int) (read bool, err error) {
	*count++
	if *count%checkEvery == 0 && d.ctx.Err() != nil {
		return false, wire.Unavailable(0, "The request ended before it was decoded: %w", d.ctx.Err())
	}
	if *count <= most {
		return true, nil
	}
	d.refuse(errMany)

	return false, nil
}

// refuse counts an item that is not taken.
func (d *decoding) refuse(reason error) {
	if d.refused.Spans == 0 || reason == errMany {
		d.refused.Reason = reason.Error()
	}
	d.refused.Spans++
}

// begin writes the resource and the scope of the items that follow. Both are written once. Its
// error is that of their source.
func (d *decoding) begin(resource, scope *head) error {
	o := &d.out
	o.max = headBytesMax
	if resource != d.resource {
		o.cut(0)
		resource.writeResource(o)
		if o.fault != nil && !o.full {
			return o.fault
		}
		d.resource, d.behind.resource, d.tooLong.resource = resource, len(o.b), o.full
	}

	o.cut(d.behind.resource)
	scope.writeScope(o)
	if o.fault != nil && !o.full {
		return o.fault
	}
	d.scope, d.behind.scope = scope, len(o.b)
	d.tooLong.scope = o.full || d.tooLong.resource

	// Space for a text that is longer while it is escaped than afterwards.
	o.max = wire.BodyBytesMax + textMost*textStep

	return nil
}

// add writes an item after its resource and scope, and hands it on. err is why its members could
// not be found.
func (d *decoding) add(it item, err error) error {
	o := &d.out
	switch {
	case err != nil:
	case d.tooLong.scope:
		err = errHead
	default:
		err = d.write(it)
	}

	if err == nil && d.keep != nil {
		kept := d.keep(it, o.b)
		if kept == nil {
			d.refused.Dropped++
			return nil
		}
		if kept != it {
			it, err = kept, d.write(kept)
		}
	}
	if err == nil {
		err = it.check()
	}
	if err != nil {
		d.refuse(err)
		return nil
	}

	it.close(o)
	switch {
	case o.full || len(o.b) > wire.BodyBytesMax:
		d.refuse(errLarge)
		return nil
	case len(o.b) > d.left:
		d.refuse(errTooLarge)
		return nil
	}
	d.left -= len(o.b)

	return d.take(it, o.body(d.behind.scope))
}

// write writes an item after its resource and scope.
func (d *decoding) write(it item) error {
	d.out.cut(d.behind.scope)
	it.write(&d.out)
	if d.out.fault == nil && d.out.full {
		return errLarge
	}

	return d.out.fault
}
