package otlp

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"promptspool/api/wire"
)

// signal is what the requests of one path carry. In protobuf all of them are laid out with
// the same numbers.
type signal struct {
	resources string   // names of members in JSON
	scopes    []string // any of these
	items     string

	fromJSON     func(object json.RawMessage) item
	fromProtobuf func(message []byte) (item, error) // its errors concern this item only
}

// item is a span or a log record that was read.
type item interface {
	check() error           // why it cannot be kept
	size() int              // about how many bytes append adds if it need not escape any
	append(b []byte) []byte // to b, which ends with the scope; closes the body
}

// decoding is one call of Traces or Logs.
type decoding struct {
	signal  *signal
	drop    func(it item) bool // reports whether an item is passed over; nil drops none
	take    func(it item, body []byte) error
	refused Refused
	scope   []byte // the name of the one that is being read
	room    int    // bytes that bodies may still have together
}

// decode reads a request.
func decode(body []byte, form Form, d *decoding) (Refused, error) {
	d.room = repeatedBytes + repeatedMax*len(body)

	var err error
	if form == JSON {
		err = d.jsonRequest(body)
	} else {
		err = d.protobufRequest(body)
	}

	return d.refused, err
}

// These bound the repetition of resources and scopes: all bodies together have at most so many
// times the bytes of the request, and so many bytes besides. That is enough for 512 small spans,
// as many as exporters send by default, with a resource of 6 KiB.
const (
	repeatedMax   = 16
	repeatedBytes = 4 << 20
)

// Bounds of nesting of a value.
const (
	plainLevelsMax = 100  // beyond it a value becomes the text of its JSON
	levelsMax      = 5000 // beyond it a span is refused
)

// Why a span is refused.
var (
	errDeep  = fmt.Errorf("a value is nested deeper than %d", levelsMax)
	errLarge = fmt.Errorf("it is larger than %d bytes as JSON with its resource", wire.BodyBytesMax)
	errRoom  = errors.New("resource and scope are too large to be kept with each of so many spans; " +
		"send fewer spans in a request")
	errTrace = errors.New("traceId must be 16 bytes, not all zero")
	errSpan  = errors.New("spanId must be 8 bytes, not all zero")
)

// refuse counts an item that is not taken.
func (d *decoding) refuse(reason error) {
	if d.refused.Spans == 0 {
		d.refused.Reason = reason.Error()
	}
	d.refused.Spans++
}

// add writes an item behind its resource and scope, and hands it on. err is why its parts
// could not be read.
func (d *decoding) add(resource, scope []byte, it item, err error) error {
	if err == nil && d.drop != nil && d.drop(it) {
		d.refused.Dropped++
		return nil
	}
	if err == nil {
		err = it.check()
	}

	// Before a byte is copied: a refused item costs no more than its own bytes.
	size := len(resource) + len(scope) + it.size()
	switch {
	case err != nil:
	case size > wire.BodyBytesMax:
		err = errLarge
	case size > d.room:
		err = errRoom
	}
	if err != nil {
		d.refuse(err)
		return nil
	}

	// What is refused below has been copied, and so is paid for, too.
	d.room -= size
	body := slices.Grow([]byte(nil), size)
	body = it.append(append(append(body, resource...), scope...))

	// Escaped, a text may have six times its length.
	more := len(body) - size
	switch {
	case len(body) > wire.BodyBytesMax:
		d.refuse(errLarge)
		return nil
	case more > d.room:
		d.refuse(errRoom)
		return nil
	}
	d.room -= more

	return d.take(it, body)
}
