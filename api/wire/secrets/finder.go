package secrets

import (
	"iter"
	"slices"

	"promptspool/api/wire"
)

// secret is a part of a source.
type secret struct {
	kind      wire.SecretKind
	from, end int
	whole     bool // a whole JSON value, not part of a text
}

// mask returns what replaces the secret.
func (s *secret) mask() string {
	if s.whole {
		return maskedValue
	}
	return maskedText
}

// finder finds the secrets in the values of a JSON object, in time linear in their bytes:
//
//   - in members called kwargs, args, parameters or headers (or ending so: extra_headers),
//     at any depth, in the body's metadata, and in texts that are JSON or Python's repr:
//     the text of a member with a credential's name (nameRules), in any case, with or without - and _;
//   - in kwargs, args, parameters and metadata at the top of a body: such a member of any type, if
//     isCredential; at the top itself, if isKeyOfBody;
//   - user, password and keys in the query of a URL that is a whole text;
//   - anywhere: well-known keys by their shape (keyShapes), and JSON web tokens.
//
// It reads the source as it is written: a text within a text within the body is not
// unpacked, and a mask never touches a byte beside its secret.
type finder struct {
	source []byte
	found  []secret
	many   bool // there are more than secretsMax
}

// secretsMax bounds what is found in one member of the body. With more it is masked as a whole: a
// list of all of them would take many times its bytes.
const secretsMax = 100_000

// all yields the secrets of an object whose source is body, in order.
func all(body []byte, object wire.Object) iter.Seq[secret] {
	return func(yield func(secret) bool) {
		f := finder{source: body}
		for _, m := range object {
			// The index is needed, because secrets are places in the source.
			value := m.End - len(m.Value)
			found := []secret{{wire.SecretName, value, m.End, true}}
			if m.Name != "api_key" {
				found = f.find(value, m.End, m.Name)
			}
			for _, s := range found {
				if !yield(s) {
					return
				}
			}
		}
	}
}

// find returns the secrets in the value from <= i < end of the object's member with this
// name, in order. They are valid until the next call.
func (f *finder) find(from, end int, member string) []secret {
	f.found, f.many = f.found[:0], false

	if isKeyOfBody(member) {
		f.addValue(from, end)
		return f.found
	}
	switch f.source[from] {
	case '"', '{', '[':
	default:
		// A number, true, false or null.
		return nil
	}

	s := scope{loose: member == "kwargs" || member == "args" || member == "parameters" || member == "metadata"}
	s.direct = s.loose && f.source[from] == '{'
	if len(member) <= nameBytesMax {
		var buf [nameBytesMax]byte
		s.places = heldBy(simpleName(buf[:0], []byte(member)))
	}
	if member == "metadata" {
		s.places = inArguments
	}

	f.names(from, s)
	f.shapes(from, end)

	// Both passes find in order, but a key may be inside a credential.
	switch {
	case f.many:
		f.found = append(f.found[:0], secret{wire.SecretName, from, end, true})
	case len(f.found) > 1:
		f.sort()
	}

	return f.found
}

// add notes a secret that is part of a text, unless it is empty or masked already.
func (f *finder) add(kind wire.SecretKind, from, end int) {
	if from < end && string(f.source[from:end]) != maskedText {
		f.note(secret{kind: kind, from: from, end: end})
	}
}

// addValue notes a value that is a credential by its name, unless it is null or masked already.
func (f *finder) addValue(from, end int) {
	if text := string(f.source[from:end]); text != "null" && text != maskedValue {
		f.note(secret{wire.SecretName, from, end, true})
	}
}

func (f *finder) note(s secret) {
	f.many = f.many || len(f.found) == secretsMax
	if !f.many {
		f.found = append(f.found, s)
	}
}

// sort orders what was found, and merges secrets that overlap.
func (f *finder) sort() {
	slices.SortFunc(f.found, func(a, b secret) int { return a.from - b.from })

	kept := f.found[:1]
	for _, s := range f.found[1:] {
		last := &kept[len(kept)-1]
		if s.from >= last.end {
			kept = append(kept, s)
			continue
		}
		last.end = max(last.end, s.end)
	}
	f.found = kept
}

// shownOfKeyBytes is how much of a well-known key is shown: its issuer's prefix, and no
// more.
const shownOfKeyBytes = 4

// Find returns how many secrets Strip would take out of body, and lists the first ones, up to limit. It adds all
// to counts, by their kind. body must be the source of object.
func Find(
	body []byte, object wire.Object, limit int, counts map[wire.SecretKind]int,
) (found []wire.SecretFinding, n int) {
	for s := range all(body, object) {
		counts[s.kind]++
		n++
		if n > limit {
			continue
		}

		finding := wire.SecretFinding{Kind: s.kind}
		if s.kind == wire.SecretKey {
			finding.Begins = string(body[s.from:s.from+shownOfKeyBytes]) + "..."
		}
		found = append(found, finding)
	}

	return found, n
}
