package secrets

import (
	"bytes"
	"strconv"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// shownOfKeyBytes is how much of a well-known key is shown: its issuer's prefix, and no
// more.
const shownOfKeyBytes = 4

// Find lists the secrets that Strip would take out of body, in order, up to limit. body
// must be the source of object.
func Find(body []byte, object wire.Object, limit int) []wire.SecretFinding {
	var found []wire.SecretFinding
	for s := range all(body, object) {
		finding := wire.SecretFinding{Kind: s.kind, Path: pathTo(body, s.from)}
		if s.kind == wire.SecretKey {
			finding.Begins = string(body[s.from:s.from+shownOfKeyBytes]) + "..."
		}
		found = append(found, finding)
		if len(found) >= limit {
			break
		}
	}

	return found
}

// Count adds the secrets of an object to counts, by kind, and returns how many there are.
func Count(body []byte, object wire.Object, counts map[wire.SecretKind]int) (n int) {
	for s := range all(body, object) {
		counts[s.kind]++
		n++
	}

	return n
}

// pathTo returns the path of the value that contains body[at], such as
// kwargs.messages[1].content. For a secret in a member's name it is the path of the
// object.
func pathTo(body []byte, at int) string {
	var path []byte
	for c := jsonscan.Enter(body, jsonscan.SkipSpace(body, 0)); ; {
		index := 0
		for c.Next() {
			end := jsonscan.SkipValue(body, c.At)
			if at < end {
				break
			}
			c.At = end
			index++
		}
		if at < c.At {
			// It is in the member's name.
			return string(path)
		}

		if c.Name == nil {
			path = append(strconv.AppendInt(append(path, '['), int64(index), 10), ']')
		} else {
			path = appendName(path, c.Name)
		}
		if body[c.At] != '{' && body[c.At] != '[' {
			return string(path)
		}
		c = jsonscan.Enter(body, c.At)
	}
}

// appendName appends a member's name, given with its quotes, to a path.
func appendName(path, quoted []byte) []byte {
	f := finder{source: quoted}
	name := quoted[1 : len(quoted)-1]

	switch {
	case len(f.find(0, len(quoted), "")) > 0:
		// A key was used as a name.
		name = []byte(maskedText)
	case bytes.ContainsAny(name, `.[]\`):
		return append(append(append(path, '['), quoted...), ']')
	}

	if len(path) > 0 {
		path = append(path, '.')
	}
	return append(path, name...)
}
