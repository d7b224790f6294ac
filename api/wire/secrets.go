package wire

import (
	"bytes"
	"strings"
)

// Masked stands in a stored body where a secret was.
const Masked = `"[masked]"`

// StripSecrets returns the object's bytes without a top-level api_key, and with the members of kwargs, args and parameters that carry
// credentials (at any depth: api_key, *_api_key, authorization, aws_secret*, in any case) masked. Blanks between the
// members go and line breaks between other tokens become blanks, so that the result fits on one line; all else keeps its
// bytes. body is the object's source: the result takes its place, unless that is too short, so that a large one is held once.
// body and object must not be used afterwards.
func StripSecrets(body []byte, object Object) []byte {
	o := overwriting{source: body, out: body[:0], inPlace: true}
	return o.strip(object)
}

// overwriting writes what becomes of a source over it, from its beginning, as long as it does not get ahead of what is still to be
// read. When it would, it goes on in a copy.
type overwriting struct {
	source, out []byte
	inPlace     bool
}

// strip does what StripSecrets says.
func (o *overwriting) strip(object Object) []byte {
	o.add("{", 1)
	for _, m := range object {
		if m.Name == "api_key" {
			continue
		}
		if len(o.out) > 1 {
			o.add(",", m.start)
		}
		value := m.end - len(m.Value)
		o.keep(m.start, value)
		if m.Name == "kwargs" || m.Name == "args" || m.Name == "parameters" {
			o.maskCredentials(value, m.end)
		} else {
			o.keep(value, m.end)
		}
	}
	o.add("}", len(o.source))
	blank(o.out, '\n') // no JSON string holds one as it is
	blank(o.out, '\r')
	return o.out
}

// add writes text; of source, what lies before read is done with.
func (o *overwriting) add(text string, read int) {
	o.leave(len(o.out)+len(text) > read)
	o.out = append(o.out, text...)
}

// keep writes a part of the source as it is.
func (o *overwriting) keep(from, end int) {
	o.leave(len(o.out) > from)
	o.out = append(o.out, o.source[from:end]...)
}

func (o *overwriting) leave(ahead bool) {
	if o.inPlace && ahead {
		o.inPlace = false
		o.out = append(make([]byte, 0, len(o.source)+LineRoom), o.out...)
	}
}

// blank turns every c into a blank.
func blank(b []byte, c byte) {
	for i := bytes.IndexByte(b, c); i >= 0; i = bytes.IndexByte(b, c) {
		b[i] = ' '
		b = b[i+1:]
	}
}

// maskCredentials writes the JSON value from <= i < end with the credentials in it masked, in one pass: in valid JSON a string before a
// colon is a member's name, at whatever depth.
func (o *overwriting) maskCredentials(from, end int) {
	source := o.source[:end]
	kept := from
	for i := from; i < end; i++ {
		if source[i] != '"' {
			continue
		}
		after := SkipString(source, i)
		colon := SkipSpace(source, after)
		if colon < end && source[colon] == ':' && isCredential(unquote(source[i:after])) {
			at := SkipSpace(source, colon+1)
			after = SkipValue(source, at)
			if string(source[at:after]) != "null" {
				o.keep(kept, at)
				o.add(Masked, after)
				kept = after
			}
		}
		i = after - 1
	}
	o.keep(kept, end)
}

func isCredential(name string) bool {
	if len(name) < len("api_key") {
		return false
	}
	name = strings.ToLower(name)
	return name == "api_key" || strings.HasSuffix(name, "_api_key") || name == "authorization" || strings.HasPrefix(name, "aws_secret")
}
