package wire

import (
	"bytes"
	"strconv"
)

// SecretFinding tells where a secret is, not what it is.
type SecretFinding struct {
	Kind   SecretKind `json:"kind"`
	Path   string     `json:"path"`             // such as kwargs.messages[1].content
	Begins string     `json:"begins,omitempty"` // of a well-known key, how all of its kind begin: sk-a...
}

// FoundSecret is a SecretFinding in a stored record.
type FoundSecret struct {
	RequestID string `json:"request_id"`
	EventID   string `json:"event_id,omitempty"` // empty: in what is kept of events whose body is not
	SecretFinding
}

// ScanQuery is the body of a call that looks for secrets in what is stored.
type ScanQuery struct {
	Mask   bool   `json:"mask"`
	Cursor string `json:"cursor"`
}

// Scanned tells how far a scan has come.
type Scanned struct {
	Success bool               `json:"success"`
	Seen    int                `json:"seen"`   // records that were looked at
	Found   int                `json:"found"`  // of them, those with a secret
	Masked  int                `json:"masked"` // of them, those of which it is masked now
	Kinds   map[SecretKind]int `json:"kinds"`  // how many secrets of each kind
	Items   []FoundSecret      `json:"items"`  // at most ScanItemsMax
	Cursor  string             `json:"cursor"` // send it to go on
	Done    bool               `json:"done"`
}

// Bounds of what one answer lists; Kinds counts all.
const (
	ScanItemsMax    = 1000
	ScanEventItems  = 20 // of one event
	shownOfKeyBytes = 4
)

// FindSecrets lists up to limit of the secrets that StripSecrets would take out of body, the source of the object, in
// their order.
func FindSecrets(body []byte, object Object, limit int) []SecretFinding {
	f := secretFinder{source: body}
	var found []SecretFinding
	f.each(object, func(s secret) bool {
		finding := SecretFinding{Kind: s.kind, Path: pathTo(body, s.from)}
		if s.kind == SecretKey {
			finding.Begins = string(body[s.from:s.from+shownOfKeyBytes]) + "..."
		}
		found = append(found, finding)
		return len(found) < limit
	})
	return found
}

// CountSecrets adds the secrets of an object to a count by kind, and returns how many they are.
func CountSecrets(body []byte, object Object, counts map[SecretKind]int) (n int) {
	f := secretFinder{source: body}
	f.each(object, func(s secret) bool {
		counts[s.kind]++
		n++
		return true
	})
	return n
}

// pathTo names the value of a JSON object in which body[at] is.
func pathTo(body []byte, at int) string {
	var path []byte
	for c := Enter(body, SkipSpace(body, 0)); ; {
		n := 0
		for c.Next() {
			end := SkipValue(body, c.At)
			if at < end {
				break
			}
			c.At = end
			n++
		}
		if at < c.At { // in the member's name
			return string(path)
		}

		if c.Name == nil {
			path = append(strconv.AppendInt(append(path, '['), int64(n), 10), ']')
		} else {
			path = appendName(path, c.Name)
		}
		if body[c.At] != '{' && body[c.At] != '[' {
			return string(path)
		}
		c = Enter(body, c.At)
	}
}

// appendName appends a member's name, which stands in quotes, to a path.
func appendName(path, quoted []byte) []byte {
	f := secretFinder{source: quoted}
	name := quoted[1 : len(quoted)-1]
	switch {
	case len(f.find(0, len(quoted), "")) > 0:
		name = []byte(maskedText)
	case bytes.ContainsAny(name, `.[]\`):
		return append(append(append(path, '['), quoted...), ']')
	}
	if len(path) > 0 {
		path = append(path, '.')
	}
	return append(path, name...)
}
