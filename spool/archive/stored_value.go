package archive

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"promptspool/api/wire/jsonscan"
)

// The stored value of a state is its JSON. What a record gathers without end stands behind
// it, if there is any, in a form that is read many times as fast:
//
//	bytes  field
//	    n  the state as JSON, without Past and Unlisted
//	    m  the ids in Unlisted, 16 bytes each, and their number as a varint in front of them
//	    -  the values in Past, one after the other: see appendPast
//	    4  n, big-endian
//	    1  valueMark, which ends no JSON
const valueMark = 0x01

// errStoredValue means that a stored value is not what encodeState wrote.
var errStoredValue = errors.New("the stored state is not readable")

// encodeState returns the stored value of a state.
func encodeState(s *State) ([]byte, error) {
	if len(s.Past)+len(s.Unlisted) == 0 {
		return jsonscan.Marshal(s)
	}

	rest := *s
	rest.Past, rest.Unlisted = nil, nil
	value, err := jsonscan.Marshal(&rest)
	if err != nil {
		return nil, err
	}

	n := len(value)
	value = binary.AppendUvarint(value, uint64(len(s.Unlisted)/len(UUID{})))
	value = append(value, s.Unlisted...)
	for _, key := range slices.Sorted(maps.Keys(s.Past)) {
		for _, v := range s.Past[key] {
			value = appendPast(value, key, v)
		}
	}

	return append(binary.BigEndian.AppendUint32(value, uint32(n)), valueMark), nil
}

// decodeState reads what encodeState returned. The state keeps nothing of value.
func decodeState(value []byte, s *State) error {
	end := len(value) - 5
	if end < 0 || value[len(value)-1] != valueMark {
		return json.Unmarshal(value, s)
	}
	n := int(binary.BigEndian.Uint32(value[end:]))
	if n > end {
		return errStoredValue
	}
	if err := json.Unmarshal(value[:n], s); err != nil {
		return err
	}

	r := valueReader{rest: string(value[n:end])} // one copy, of which all texts are parts
	s.Unlisted = []byte(r.take(r.number() * uint64(len(UUID{}))))
	if len(s.Unlisted) == 0 {
		s.Unlisted = nil
	}
	for len(r.rest) > 0 && !r.failed {
		key := r.text()
		seconds, nanos := r.number(), r.number()
		v := Stamped[string]{Stamp{time.Unix(int64(seconds), int64(nanos)).UTC(), r.text()}, r.text()}
		if s.Past == nil {
			s.Past = make(map[string][]Stamped[string])
		}
		s.Past[key] = append(s.Past[key], v)
	}
	if r.failed {
		return fmt.Errorf("%w: it ends early", errStoredValue)
	}

	return nil
}

// appendPast appends a value that a key had: the key, the seconds and nanoseconds of the stamp as
// varints, its id, and the value. Each text has its length in front of it.
func appendPast(b []byte, key string, v Stamped[string]) []byte {
	b = appendText(b, key)
	b = binary.AppendUvarint(b, uint64(v.At.Unix()))
	b = binary.AppendUvarint(b, uint64(v.At.Nanosecond()))

	return appendText(appendText(b, v.ID), v.Value)
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// valueReader reads the part of a stored value that is not JSON. What is missing is empty.
type valueReader struct {
	rest   string
	failed bool
}

func (r *valueReader) number() uint64 {
	n, size := binary.Uvarint([]byte(r.rest[:min(len(r.rest), binary.MaxVarintLen64)]))
	if size <= 0 {
		r.failed = true
		return 0
	}
	r.rest = r.rest[size:]

	return n
}

func (r *valueReader) take(n uint64) (text string) {
	if n > uint64(len(r.rest)) {
		r.failed = true
		return ""
	}
	text, r.rest = r.rest[:n], r.rest[n:]

	return text
}

func (r *valueReader) text() string { return r.take(r.number()) }
