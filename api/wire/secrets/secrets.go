// Package secrets finds credentials in the bodies that apps send, and masks them. It
// knows credentials by the names of their members and by the shapes of well-known keys;
// see finder for the rules.
//
// Bodies may be 32 MiB and hostile, so everything here runs on the bytes as they were
// sent, in time linear in their number.
package secrets

import (
	"bytes"

	"promptspool/api/wire"
)

// A masked value is a JSON string; a masked part of a text is without quotes.
const (
	maskedText  = "[masked]"
	maskedValue = `"` + maskedText + `"`
)

// Strip returns the object's bytes on one line, without a top-level api_key and with all
// other secrets masked. White space between members is dropped, and line breaks between
// other tokens become blanks; every other byte stays. body must be the source of object.
//
// The result overwrites body where it can, so that a large one is held only once. body
// and object must not be used afterwards.
func Strip(body []byte, object wire.Object) []byte {
	r := rewriter{source: body, out: body[:0], inPlace: true}
	return r.strip(object)
}

// Mask is Strip on a copy, and reports whether there was any secret. If not, it returns
// body itself.
func Mask(body []byte, object wire.Object) (masked []byte, found bool) {
	// Most bodies have no secret: finding that out first saves them the copy.
	all(body, object)(func(secret) bool {
		found = true
		return false
	})
	if !found {
		return body, false
	}

	return Strip(bytes.Clone(body), object), true
}

// rewriter writes the result over its own source, from the beginning, as long as it does
// not overtake the bytes that are still to be read. When it would, because a mask is
// longer than its secret, it continues in a copy.
type rewriter struct {
	source, out []byte
	inPlace     bool
}

// strip does what Strip documents.
func (r *rewriter) strip(object wire.Object) []byte {
	f := finder{source: r.source}

	r.add("{", 1)
	for _, m := range object {
		if m.Name == "api_key" {
			continue
		}

		if len(r.out) > 1 {
			r.add(",", m.Start)
		}
		value := m.End - len(m.Value)
		r.keep(m.Start, value)
		r.mask(f.find(value, m.End, m.Name), value, m.End)
	}
	r.add("}", len(r.source))

	// No JSON string holds a raw line break, so these are all between tokens.
	blank(r.out, '\n')
	blank(r.out, '\r')

	return r.out
}

// add writes text. The source up to read is not needed any more.
func (r *rewriter) add(text string, read int) {
	r.leaveIf(len(r.out)+len(text) > read)
	r.out = append(r.out, text...)
}

// keep writes a part of the source unchanged.
func (r *rewriter) keep(from, end int) {
	r.leaveIf(len(r.out) > from)
	r.out = append(r.out, r.source[from:end]...)
}

// leaveIf moves to a copy if the next write would overtake the reading.
func (r *rewriter) leaveIf(overtakes bool) {
	if r.inPlace && overtakes {
		r.inPlace = false
		r.out = append(make([]byte, 0, len(r.source)), r.out...)
	}
}

// mask writes the value in from <= i < end with its secrets masked.
func (r *rewriter) mask(secrets []secret, from, end int) {
	for _, s := range secrets {
		r.keep(from, s.from)
		r.add(s.mask(), s.end)
		from = s.end
	}
	r.keep(from, end)
}

// blank replaces every c by a blank.
func blank(b []byte, c byte) {
	for i := bytes.IndexByte(b, c); i >= 0; i = bytes.IndexByte(b, c) {
		b[i] = ' '
		b = b[i+1:]
	}
}
