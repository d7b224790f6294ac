package wire

import "bytes"

// Masked stands in a stored body where a secret was. Where that was part of a text, it stands there without quotes.
const Masked = `"` + maskedText + `"`

const maskedText = "[masked]"

// StripSecrets returns the object's bytes without a top-level api_key and with the secrets in them masked: see
// secretFinder for what those are. Blanks between the members go and line breaks between other tokens become blanks,
// so that the result fits on one line; all else keeps its bytes. body is the object's source: the result takes its
// place, unless that is too short, so that a large one is held once. body and object must not be used afterwards.
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
	f := secretFinder{source: o.source}
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
		o.mask(f.find(value, m.end, m.Name), value, m.end)
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
		o.out = append(make([]byte, 0, len(o.source)), o.out...)
	}
}

// blank turns every c into a blank.
func blank(b []byte, c byte) {
	for i := bytes.IndexByte(b, c); i >= 0; i = bytes.IndexByte(b, c) {
		b[i] = ' '
		b = b[i+1:]
	}
}

// mask writes the JSON value from <= i < end with its secrets masked.
func (o *overwriting) mask(secrets []secret, from, end int) {
	for _, s := range secrets {
		o.keep(from, s.from)
		o.add(s.mask(), s.end)
		from = s.end
	}
	o.keep(from, end)
}

// MaskSecrets returns the object's bytes as StripSecrets does, but leaves body as it is; found reports whether there
// was any secret. Without one, masked is body itself.
func MaskSecrets(body []byte, object Object) (masked []byte, found bool) {
	f := secretFinder{source: body}
	f.each(object, func(secret) bool {
		found = true
		return false
	})
	if !found {
		return body, false
	}
	return StripSecrets(bytes.Clone(body), object), true
}
