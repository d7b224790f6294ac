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
// bytes. body is the object's source and is not changed; the result is always a copy.
func StripSecrets(body []byte, object Object) []byte {
	out := make([]byte, 0, len(body))
	out = append(out, '{')
	for _, m := range object {
		if m.Name == "api_key" {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		value := m.Value
		out = append(out, body[m.start:m.end-len(value)]...)
		if m.Name == "kwargs" || m.Name == "args" || m.Name == "parameters" {
			out = appendMasked(out, value)
		} else {
			out = append(out, value...)
		}
	}
	out = append(out, '}')
	blank(out, '\n') // no JSON string holds one as it is
	blank(out, '\r')
	return out
}

// blank turns every c into a blank.
func blank(b []byte, c byte) {
	for i := bytes.IndexByte(b, c); i >= 0; i = bytes.IndexByte(b, c) {
		b[i] = ' '
		b = b[i+1:]
	}
}

// appendMasked appends a JSON value with the credentials in it masked, in one pass: in valid JSON a string before a colon
// is a member's name, at whatever depth.
func appendMasked(out, value []byte) []byte {
	copied := 0
	for i := 0; i < len(value); i++ {
		if value[i] != '"' {
			continue
		}
		end := skipString(value, i)
		colon := skipSpace(value, end)
		if colon < len(value) && value[colon] == ':' && isCredential(unquote(value[i:end])) {
			from := skipSpace(value, colon+1)
			end = skipValue(value, from)
			if string(value[from:end]) != "null" {
				out = append(append(out, value[copied:from]...), Masked...)
				copied = end
			}
		}
		i = end - 1
	}
	return append(out, value[copied:]...)
}

func isCredential(name string) bool {
	if len(name) < len("api_key") {
		return false
	}
	name = strings.ToLower(name)
	return name == "api_key" || strings.HasSuffix(name, "_api_key") || name == "authorization" || strings.HasPrefix(name, "aws_secret")
}
