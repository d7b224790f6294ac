package archive

import (
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"promptspool/api/wire"
)

// A metadata value of more than longBytes is only in the body of its event. States and rows hold a
// reference to it instead, which is
//
//	longMark   a noncharacter, which no text should have; what begins with it is referred to as well
//	32         HashValue, in hex
//	           the beginning of the value, at most longPrefixBytes
//
// so that equal values have equal references, and only they. Earlier versions kept long values whole:
// they are replaced where rows are read.
const (
	longBytes       = 1024
	longPrefixBytes = 256
	longMark        = "\U0010FFFF"
)

// StoredValue is what states and rows hold of a metadata value: the value itself, or a reference to it.
func StoredValue(key, value string) string {
	if len(value) <= longBytes && !strings.HasPrefix(value, longMark) {
		return value
	}
	hash := HashValue(key, value)

	return longMark + hex.EncodeToString(hash[:]) + cutBytes(value, longPrefixBytes)
}

// Shortened is StoredValue of what an earlier version may have stored whole.
func Shortened(key, stored string) string {
	if len(stored) <= longBytes {
		return stored
	}

	return StoredValue(key, stored)
}

// HashStored is HashValue of what a state or a row holds.
func HashStored(key, stored string) [16]byte {
	if hash, _, ok := readReference(stored); ok {
		return hash
	}

	return HashValue(key, stored)
}

// readReference takes a reference apart; ok is false for anything else.
func readReference(stored string) (hash [16]byte, prefix string, ok bool) {
	rest, ok := strings.CutPrefix(stored, longMark)
	if !ok || len(rest) < hex.EncodedLen(len(hash)) {
		return hash, "", false
	}
	digits, prefix := rest[:hex.EncodedLen(len(hash))], rest[hex.EncodedLen(len(hash)):]
	_, err := hex.Decode(hash[:], []byte(digits))

	return hash, prefix, err == nil
}

func isReference(stored string) bool {
	_, _, ok := readReference(stored)
	return ok
}

// shownValue is what lists show of a stored value.
func shownValue(stored string) string {
	if _, prefix, ok := readReference(stored); ok {
		return prefix + "…"
	}

	return stored
}

// shorten replaces long values by references, and reports whether there were any: then the body is to be kept.
func (e *Event) shorten() (long bool) {
	metadata := e.Metadata
	if e.Request != nil {
		metadata = e.Request.Metadata
	}
	for key, value := range metadata {
		if stored := StoredValue(key, value); stored != value {
			metadata[key], long = stored, true
		}
	}
	if e.Prompt != nil && len(e.Prompt.InputVariables) > longBytes {
		e.Prompt.InputVariables, e.Prompt.Elsewhere, long = nil, true, true
	}

	return long
}

// Shown are the ids of the events whose bodies are needed to show the record: that of the request, and those with long
// values that the state only refers to.
func (s *State) Shown() (ids []string) {
	if s.Request != nil {
		ids = append(ids, s.Request.ID)
	}
	for _, v := range s.Metadata {
		if isReference(v.Value) {
			ids = append(ids, v.ID)
		}
	}
	if s.Prompt != nil && s.Prompt.Value.Elsewhere {
		ids = append(ids, s.Prompt.ID)
	}
	slices.Sort(ids)

	return slices.Compact(ids)
}

// Restore replaces references by the values that are in these bodies of events. What is not there stays.
func (s *State) Restore(bodies map[string]json.RawMessage) {
	s.restore(bodies, func(key, stored, value string) bool { return StoredValue(key, value) == stored })
}

// restore is Restore with those values that fit.
func (s *State) restore(bodies map[string]json.RawMessage, fits func(key, stored, value string) bool) {
	read := make(map[string]map[string]string) // metadata of events
	s.eachValue(func(event, key, stored string) string {
		if !isReference(stored) {
			return stored
		}
		if read[event] == nil {
			read[event] = readMetadata(bodies[event])
		}
		if value, ok := read[event][key]; ok && fits(key, stored, value) {
			return value
		}
		return stored
	})

	if s.Prompt == nil || !s.Prompt.Value.Elsewhere {
		return
	}
	object, err := wire.ParseObject(bodies[s.Prompt.ID])
	if err != nil {
		return
	}
	w, _ := wire.DecodePrompt(object)
	prompt := *s.Prompt
	prompt.Value.InputVariables, prompt.Value.Elsewhere = w.InputVariables, false
	s.Prompt = &prompt
}

// readMetadata is the metadata in the body of an event that is a request or a metadata event.
func readMetadata(body json.RawMessage) map[string]string {
	object, err := wire.ParseObject(body)
	if err != nil {
		return map[string]string{}
	}
	w, _ := wire.DecodeMetadata(object)
	if w.Metadata == nil {
		w.Metadata = map[string]string{}
	}

	return w.Metadata
}

// refer replaces the long values of events whose bodies are kept by references.
func (s *State) refer(bodies map[string]json.RawMessage) {
	s.eachValue(func(event, key, stored string) string {
		if bodies[event] == nil || isReference(stored) {
			return stored
		}
		return StoredValue(key, stored)
	})
	if p := s.Prompt; p != nil && bodies[p.ID] != nil && len(p.Value.InputVariables) > longBytes {
		p.Value.InputVariables, p.Value.Elsewhere = nil, true
	}
}

// eachValue replaces every metadata value that the state holds by what fn makes of it. What events share with the state
// stays as it is.
func (s *State) eachValue(fn func(event, key, stored string) string) {
	all := func(event string, metadata map[string]string) map[string]string {
		metadata = maps.Clone(metadata)
		for key, value := range metadata {
			metadata[key] = fn(event, key, value)
		}
		return metadata
	}

	for key, v := range s.Metadata {
		v.Value = fn(v.ID, key, v.Value)
		s.Metadata[key] = v
	}
	for key, past := range s.Past {
		for i := range past {
			past[i].Value = fn(past[i].ID, key, past[i].Value)
		}
	}
	for i := range s.Rivals {
		s.Rivals[i].Value = all(s.Rivals[i].ID, s.Rivals[i].Value)
	}
	if s.Request != nil {
		request := *s.Request
		request.Value.Metadata = all(request.ID, request.Value.Metadata)
		s.Request = &request
	}
}
