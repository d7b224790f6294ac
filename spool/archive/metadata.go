package archive

import (
	"maps"
	"slices"
	"sort"

	"promptspool/api/calls/otel/dialect"
	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// putMetadata sets a key, and keeps the value that lost: a deletion may match what the
// record was at some earlier moment.
func (s *State) putMetadata(key string, stamp Stamp, value string) {
	old, had := s.Metadata[key]
	s.Metadata = put(s.Metadata, key, stamp, value)
	if !had {
		return
	}

	// An event that comes late may lose to what is there already.
	loser := old
	if s.Metadata[key] == old {
		loser = Stamped[string]{stamp, value}
	}

	past := s.Past[key]
	byStamp := func(v Stamped[string], stamp Stamp) int { return v.Compare(stamp) }
	i, _ := slices.BinarySearchFunc(past, loser.Stamp, byStamp)
	s.Past = with(s.Past, key, slices.Insert(past, i, loser))
}

// addRival keeps the metadata of a request that is not the record's. One without metadata
// is kept as well: with it, what metadata events said of the record still applies.
func (s *State) addRival(stamp Stamp, metadata map[string]string) {
	rival := newRival(stamp, metadata)
	byStamp := func(r Stamped[map[string]string], stamp Stamp) int { return r.Compare(stamp) }
	i, _ := slices.BinarySearchFunc(s.Rivals, stamp, byStamp)
	s.Rivals = slices.Insert(s.Rivals, i, rival)
}

// newRival returns the same for a request that was just read as for one that was stored,
// which has nil in place of empty metadata.
func newRival(stamp Stamp, metadata map[string]string) Stamped[map[string]string] {
	if len(metadata) == 0 {
		metadata = nil
	}

	return Stamped[map[string]string]{stamp, metadata}
}

// Hidden returns all metadata values that the record has and does not show, each once. A Store
// that finds records by their rows needs these too, for deletions.
func (s *State) Hidden() []wire.MetadataRow {
	if !s.Hides() {
		return nil
	}

	return s.withoutShown(s.Had())
}

// withoutShown removes from values what the record shows.
func (s *State) withoutShown(values []wire.MetadataRow) []wire.MetadataRow {
	return slices.DeleteFunc(values, func(m wire.MetadataRow) bool {
		now, ok := s.shownValue(m.Key)
		if !ok {
			now, ok = s.Context[m.Key]
		}
		return ok && now == m.Value
	})
}

// shownValue returns what the record shows under a key. It looks at this key alone, because
// it is asked for each event of a batch.
func (s *State) shownValue(key string) (value string, ok bool) {
	later, ok := s.Metadata[key]
	if s.Request == nil {
		return later.Value, ok
	}

	own, set := s.Request.Value.Metadata[key]
	if set && (!ok || later.Compare(s.Request.Stamp) < 0) {
		return own, true
	}
	return later.Value, ok
}

// SessionID returns the session of the call, "" if it is unknown. It is the metadata of that name, as
// are UserID and Environment.
func (s *State) SessionID() string { return s.named(dialect.SessionKey) }

// UserID returns whom the call was for, "" if that is unknown.
func (s *State) UserID() string { return s.named(dialect.UserKey) }

// Environment returns where the app of the call runs, "" if that is unknown.
func (s *State) Environment() string { return s.named(dialect.EnvironmentKey) }

// firstToken returns the milliseconds until the first token came, nil if they are unknown.
func (s *State) firstToken() *float64 {
	ms, ok := wire.ParseFirstToken(s.named(wire.FirstTokenKey))
	if !ok {
		return nil
	}
	return &ms
}

// named returns what metadata has under a key, "" if that is too long to be a name.
func (s *State) named(key string) string {
	value, ok := s.shownValue(key)
	if !ok && s.Given != nil {
		value, ok = s.Given.Metadata[key].Value, s.Given.Metadata[key].ID != ""
	}
	if !ok && s.Same != nil {
		value, ok = s.Same.Metadata[key]
	}
	if !ok {
		value = s.Context[key]
	}
	if rowcode.IsReference(value) {
		return ""
	}

	return value
}

// Had returns all metadata values that the record has or had, each once.
func (s *State) Had() []wire.MetadataRow {
	var had []wire.MetadataRow
	add := func(key, value string) {
		had = append(had, wire.MetadataRow{Key: key, Value: value})
	}

	for key, v := range s.Metadata {
		add(key, v.Value)
	}
	if s.Request != nil {
		for key, value := range s.Request.Value.Metadata {
			add(key, value)
		}
	}
	for key, value := range s.Context {
		add(key, value)
	}
	for key, past := range s.Past {
		for _, v := range past {
			add(key, v.Value)
		}
	}
	for _, r := range s.Rivals {
		for key, value := range r.Value {
			add(key, value)
		}
	}

	sort.Slice(had, func(i, j int) bool { return rowcode.CompareMetadata(had[i], had[j]) < 0 })

	return slices.Compact(had)
}

// Hides reports whether the record has, or ever had, metadata that it does not show.
func (s *State) Hides() bool {
	if len(s.Past)+len(s.Rivals) > 0 {
		return true
	}
	if s.Request == nil {
		return false
	}
	// Of the two values of one key only the later is shown.
	for key := range s.Request.Value.Metadata {
		if _, twice := s.Metadata[key]; twice {
			return true
		}
	}

	return false
}

// shownMetadata returns the metadata in the form that people see.
func (s *State) shownMetadata() map[string]string {
	m := s.Whole()
	for key, value := range m {
		m[key] = rowcode.ShownValue(value)
	}

	return m
}

// Whole returns the metadata that the record shows, each key from the highest stamp. After Restore
// it has long values in full.
func (s *State) Whole() map[string]string {
	m := maps.Clone(s.Context)
	if m == nil {
		m = make(map[string]string, len(s.Metadata))
	}
	if s.Same != nil {
		// Only keys that the record itself lacks.
		maps.Copy(m, s.Same.Metadata)
	}
	if s.Given != nil {
		for key, v := range s.Given.Metadata {
			m[key] = v.Value
		}
	}
	maps.Copy(m, s.ownMetadata())

	return m
}

// ownMetadata is Whole without what comes from other records.
func (s *State) ownMetadata() map[string]string {
	m := make(map[string]string, len(s.Metadata))
	for key, v := range s.Metadata {
		m[key] = v.Value
	}
	if s.Request == nil {
		return m
	}

	// Where an event set the same key, the later of the two is shown.
	for key := range s.Request.Value.Metadata {
		m[key], _ = s.shownValue(key)
	}

	return m
}
