package wire

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize/english"

	"promptspool/api/wire/jsonscan"
)

// fields reads members of an object and collects what is wrong with them, so that a
// caller learns of all faults in one answer. Its methods return zero values for members
// that are absent or at fault.
type fields struct {
	object Object
	errs   []FieldError

	// A call is worth more than all of its tags and metadata: it is kept without what exceeds
	// a limit.
	isCall  bool
	dropped []Dropped

	now  time.Time // when a call was accepted; see UnixTime
	note string    // a sentence for each time that is not in seconds, with a space before it

	isQuery bool   // its values are texts
	isAsked bool   // see DecodeQuery
	name    string // see DecodeNamed
}

// faultsMax bounds the faults that are reported: a hostile body may have millions.
const faultsMax = 32

// fault notes what is wrong with a field.
func (f *fields) fault(name, format string, args ...any) {
	if len(f.errs) == faultsMax {
		return
	}
	f.errs = append(f.errs, FieldError{Field: name, Reason: fmt.Sprintf(format, args...)})
}

// excess notes how many parts of a field exceed a limit. Of a call they are dropped; any other
// write is at fault.
func (f *fields) excess(count int, name, format string, args ...any) {
	switch {
	case count == 0 || f.isCall && len(f.dropped) == faultsMax:
	case f.isCall:
		f.dropped = append(f.dropped, Dropped{Field: name, Reason: fmt.Sprintf(format, args...), Count: count})
	default:
		f.fault(name, format, args...)
	}
}

// err returns an Invalid of everything collected, or nil.
func (f *fields) err() error {
	if len(f.errs) == 0 {
		return nil
	}
	return Invalid(f.errs...)
}

// raw returns a member, and whether it exists and is not null. A missing one is a fault
// if it is required.
func (f *fields) raw(name string, required bool) (json.RawMessage, bool) {
	v, ok := f.object.Get(name)
	ok = ok && !(f.isQuery && string(v) == `""`)
	if !ok && required {
		f.fault(name, "is missing")
	}
	return v, ok
}

// text reads a string of at most runesMax characters; a required one must not be empty.
func (f *fields) text(name string, required bool, runesMax int) string {
	v, ok := f.raw(name, required)
	if !ok {
		return ""
	}
	if v[0] != '"' {
		f.fault(name, "must be a string")
		return ""
	}

	s := jsonscan.Unquote(v)
	if required && s == "" {
		f.fault(name, "must not be empty")
	}
	f.bound(name, s, runesMax)

	return s
}

// textOrInteger reads a string or an integer, as text: clients use ids of either type.
func (f *fields) textOrInteger(name string, required bool, runesMax int) string {
	v, ok := f.raw(name, required)
	switch {
	case !ok:
		return ""
	case v[0] == '"':
		return f.text(name, required, runesMax)
	}

	n, ok := integer(v)
	if !ok {
		f.fault(name, "must be a string or an integer")
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// bound checks the length of a text.
func (f *fields) bound(name, s string, runesMax int) {
	// A text has no more characters than bytes, so most need not be counted.
	if len(s) > runesMax && utf8.RuneCountInString(s) > runesMax {
		f.fault(name, "is longer than %d characters", runesMax)
	}
}

// json reads an object.
func (f *fields) json(name string, required bool) json.RawMessage {
	return f.ofType(name, required, "object")
}

// ofType reads a value of one of some types of JSON, as it was sent.
func (f *fields) ofType(name string, required bool, types ...string) json.RawMessage {
	v, ok := f.object.Get(name)
	switch {
	case !ok && !slices.Contains(types, "null"):
		_, _ = f.raw(name, required)
		return nil
	case v == nil || slices.Contains(types, typeOf(v)):
		return v
	}

	var wanted []string
	for _, t := range types {
		wanted = append(wanted, articles[t]+t)
	}
	f.fault(name, "must be %s", english.WordSeries(wanted, "or"))

	return nil
}

// typeOf returns the type of a value, as JSON Schema calls it.
func typeOf(v json.RawMessage) string {
	switch v[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 'n':
		return "null"
	case 't', 'f':
		return "boolean"
	default:
		return "number"
	}
}

// articles precede the name of a type in a sentence.
var articles = map[string]string{"object": "an ", "array": "an ", "string": "a ", "number": "a "}

// version reads a template version: a positive integer or, from older clients, the same
// as a string of digits. An empty string means absent.
func (f *fields) version(name string, required bool) int {
	v, ok := f.raw(name, required)
	if !ok || string(v) == `""` {
		return 0
	}

	var n int64
	if v[0] == '"' {
		digits, err := strconv.ParseUint(jsonscan.Unquote(v), 10, 31)
		n, ok = int64(digits), err == nil
	} else {
		n, ok = integer(v)
	}
	if !ok || n < 1 || n > math.MaxInt32 {
		f.fault(name, "must be an integer of at least 1")
		return 0
	}

	return int(n)
}

// tags reads an array of strings; nil if it is absent. A query has a member for each of them.
func (f *fields) tags(name string) (tags []string) {
	v, ok := f.raw(name, false)
	if !ok {
		return nil
	}
	if f.isQuery {
		var all []json.RawMessage
		for _, m := range f.object {
			if m.Name == name {
				all = append(all, m.Value)
			}
		}
		v, _ = json.Marshal(all)
	}
	if v[0] != '[' {
		f.fault(name, "must be an array of strings")
		return nil
	}

	tags = []string{}
	more := 0
	for i, e := range jsonscan.Elements(v) {
		if i >= TagsMax {
			more++
			continue
		}

		path := name + "[" + strconv.Itoa(i) + "]"
		if e[0] != '"' {
			f.fault(path, "must be a string")
			continue
		}
		tag := jsonscan.Unquote(e)
		// Kept even if it is too long: the archive takes
		// what it can of an accepted write.
		f.bound(path, tag, NameRunesMax)
		if !f.isCall || tag != "" && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	f.excess(more, name, "has more than %d entries", TagsMax)

	return tags
}

// metadata reads an object into strings; nil if it is absent. A member that is null is
// absent, too.
func (f *fields) metadata(name string, required bool) map[string]string {
	v := f.json(name, required)
	if v == nil {
		return nil
	}

	metadata := make(map[string]string)
	size, more, over := 0, 0, 0
	for e := range jsonscan.Members(v) {
		if string(e.Value) == "null" {
			continue
		}
		// Whose call it was is kept, wherever it is among the others.
		first := slices.Contains(CallNames, e.Name)
		if len(metadata) >= MetadataKeysMax && !first {
			more++
			continue
		}

		path := name + "." + e.Name
		if utf8.RuneCountInString(e.Name) > MetadataKeyRunesMax {
			f.excess(1, name, "has a key of more than %d characters", MetadataKeyRunesMax)
			continue
		}

		text := metadataText(e.Value)
		if len(text) > MetadataValueBytesMax {
			f.excess(1, path, "is longer than %d bytes", MetadataValueBytesMax)
			continue
		}
		if (over > 0 || size+len(e.Name)+len(text) > MetadataBytesMax) && !first {
			over++
			if f.isCall {
				continue
			}
		}
		// A fault for the caller. The archive, which rejects nothing, keeps the last one.
		if _, twice := metadata[e.Name]; twice {
			f.fault(path, "is given twice")
		}
		metadata[e.Name] = text
		size += len(e.Name) + len(text)
	}
	f.excess(more, name, "has more than %d keys", MetadataKeysMax)
	f.excess(over, name, "has more than %d bytes in keys and values", MetadataBytesMax)

	return metadata
}

// FirstTokenKey is the metadata key of the milliseconds until the first token came.
const FirstTokenKey = "time_to_first_token_ms"

// CallNames are the fields of a call that are kept as its metadata under the same names, besides
// FirstTokenKey.
var CallNames = []string{"session_id", "user_id", "environment"}

// Placed is whose call it was, and where it is in a trace.
type Placed struct {
	// The session or conversation of the call. It is kept as metadata, as are the two below,
	// and takes precedence over metadata of the same name.
	SessionID string `json:"session_id,omitempty" jsonschema:"anyof_type=string;integer,maxLength=256"`
	// The user that the call was made for.
	UserID string `json:"user_id,omitempty" jsonschema:"anyof_type=string;integer,maxLength=256"`
	// Where the app runs, such as production.
	Environment string `json:"environment,omitempty" jsonschema:"anyof_type=string;integer,maxLength=256"`
	TracePlace
	// Milliseconds from the start of the call to its first token.
	FirstTokenMS *float64 `json:"time_to_first_token_ms,omitempty" jsonschema:"minimum=0,maximum=86400000"`
}

// TracePlace is where a call is in the caller's own trace. The ids are hexadecimal, in lower case;
// "" if there is none.
type TracePlace struct {
	// The trace of the call: 32 hexadecimal digits. Zeros mean none, here and below.
	TraceID string `json:"trace_id,omitempty" jsonschema:"maxLength=32" read:"hex"`
	// The call's span in that trace: 16 hexadecimal digits. The call of a span with these ids is
	// the same one.
	SpanID string `json:"span_id,omitempty" jsonschema:"maxLength=16" read:"hex"`
	// The span that the call is a step of: 16 hexadecimal digits.
	ParentSpanID string `json:"parent_span_id,omitempty" jsonschema:"maxLength=16" read:"hex"`
}

// addTo returns metadata with the fields that are kept as metadata, which take precedence.
func (p *Placed) addTo(metadata map[string]string) map[string]string {
	firstToken := ""
	if p.FirstTokenMS != nil {
		firstToken = strconv.FormatFloat(*p.FirstTokenMS, 'f', -1, 64)
	}

	for i, text := range []string{p.SessionID, p.UserID, p.Environment, firstToken} {
		if text == "" {
			continue
		}
		if metadata == nil {
			metadata = make(map[string]string)
		}
		// Of one that is too long, the archive keeps the beginning.
		metadata[append(CallNames, FirstTokenKey)[i]] = Clip(text, CallNameRunesMax)
	}

	return metadata
}

// ParseFirstToken reads milliseconds until the first token, as metadata has them.
func ParseFirstToken(text string) (ms float64, ok bool) {
	ms, err := strconv.ParseFloat(text, 64)
	return ms, err == nil && ms >= 0 && ms <= FirstTokenMax
}

// hexID reads an id of size bytes. Without tracing, some clients send null, an empty text or
// zeros.
func (f *fields) hexID(name string, size int) string {
	v, ok := f.raw(name, false)
	if !ok || string(v) == `""` {
		return ""
	}

	var id string
	if v[0] == '"' {
		id = strings.ToLower(jsonscan.Unquote(v))
	}
	if b, err := hex.DecodeString(id); err != nil || len(b) != size {
		f.fault(name, "must be %d hexadecimal digits", 2*size)
		return ""
	}
	if strings.Trim(id, "0") == "" {
		return ""
	}

	return id
}

// metadataText returns a metadata value as text: a string's own, anything else as JSON
// without white space.
func metadataText(v json.RawMessage) string {
	if v[0] == '"' {
		return jsonscan.Unquote(v)
	}

	var compact bytes.Buffer
	if json.Compact(&compact, v) != nil {
		// Of a body that was checked, so it cannot fail.
		return string(v)
	}
	return compact.String()
}

// values reads an object into a map; nil if it is absent.
func (f *fields) values(name string) map[string]json.RawMessage {
	v := f.json(name, false)
	if v == nil {
		return nil
	}

	values := make(map[string]json.RawMessage)
	for m := range jsonscan.Members(v) {
		// An entry takes many times its bytes in the body, so there are only so many.
		if len(values) == ObjectMembersMax {
			f.fault(name, "has more than %d members", ObjectMembersMax)
			break
		}
		values[m.Name] = m.Value
	}

	return values
}

func isNumber(v json.RawMessage) bool { return v[0] == '-' || v[0] >= '0' && v[0] <= '9' }

// integer reads an integer between two bounds; nil if it is absent.
func (f *fields) integer(name string, least, most int64) *int64 {
	v, ok := f.raw(name, false)
	if !ok {
		return nil
	}
	if f.isQuery {
		v = []byte(jsonscan.Unquote(v))
	}

	n, ok := integer(v)
	if !ok || n < least || n > most {
		f.fault(name, "must be an integer from %d to %d", least, most)
		return nil
	}
	return &n
}

// number reads a number between two bounds; nil if it is absent.
func (f *fields) number(name string, least, most float64) *float64 {
	v, ok := f.raw(name, false)
	if !ok {
		return nil
	}

	if f.isQuery {
		v = []byte(jsonscan.Unquote(v))
	}
	x, err := strconv.ParseFloat(string(v), 64)
	if !isNumber(v) || err != nil || x < least || x > most {
		f.fault(name, "must be a number from %d to %d", int64(least), int64(most))
		return nil
	}
	return &x
}

// integer reads a JSON number with an integral value. It accepts plain digits that fit 64
// bits, and other spellings (87.0, 8.7e1) up to 53 bits, which a float64 holds exactly.
func integer(v json.RawMessage) (int64, bool) {
	if !isNumber(v) {
		return 0, false
	}
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		return n, true
	}

	x, err := strconv.ParseFloat(string(v), 64)
	if err != nil || x != math.Trunc(x) || math.Abs(x) > 1<<53 {
		return 0, false
	}
	return int64(x), true
}

// time reads a moment: a number since 1970 (see UnixTime), or ISO-8601.
func (f *fields) time(name string, required bool) time.Time {
	v, ok := f.raw(name, required)
	if !ok {
		return time.Time{}
	}

	if isNumber(v) {
		t, unit := UnixTime(string(v), f.now)
		switch {
		case t.IsZero():
			f.fault(name, "is not a time of a call, in seconds since 1970 or in any other unit")
		case unit != "seconds":
			f.note += fmt.Sprintf(" %s was read as %s; send seconds since 1970.", name, unit)
		case !isOfCall(t, f.now):
			f.note += " " + name + " is not the time of a call, so lists do not go by it."
		}
		return t
	}
	if v[0] == '"' {
		if t, ok := ParseTime(jsonscan.Unquote(v)); ok {
			return t
		}
	}

	f.fault(name, "must be a number of seconds since 1970, or an ISO-8601 time")
	return time.Time{}
}

// isoLayouts are the spellings of ISO-8601 that clients use; the most frequent ones come
// first.
var isoLayouts = []string{
	time.RFC3339Nano,
	"2006-01-02T15:04:05.999999999",
	"2006-01-02 15:04:05.999999999Z07:00",
	"2006-01-02 15:04:05.999999999",
	"2006-01-02T15:04:05.999999999Z0700",
	time.DateOnly,
}

// ParseTime reads ISO-8601 as clients write it: with or without fraction, zone and T. The
// default zone is UTC. The result is UTC and between the years 1 and 9999, because no
// other time can be written as JSON.
func ParseTime(s string) (time.Time, bool) {
	for _, layout := range isoLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			t = t.UTC()
			return t, isMoment(t)
		}
	}
	return time.Time{}, false
}

// isMoment reports whether t, in UTC, is between the years 1 and 9999 and not the zero
// time.
func isMoment(t time.Time) bool { return !t.IsZero() && t.Year() >= 1 && t.Year() <= 9999 }

// timeUnits are what clients count time in. Each has three digits more than the one before.
var timeUnits = []string{"seconds", "milliseconds", "microseconds", "nanoseconds"}

// CallsBegan is before every model call. A caller's number may count from the start of a
// machine, and 0 means unknown.
var CallsBegan = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// UnixTime reads a decimal number since 1970, and returns its unit. Seconds are any moment. A
// number that is none is in another unit if that makes it a time of a call, until a day after now; else
// the time is zero.
func UnixTime(number string, now time.Time) (t time.Time, unit string) {
	if strings.ContainsAny(number, "eE") {
		float, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return time.Time{}, ""
		}
		number = strconv.FormatFloat(float, 'f', 9, 64)
	}

	whole, fraction, _ := strings.Cut(number, ".")
	for i, unit := range timeUnits {
		point := max(0, len(whole)-3*i)
		t := unixTime(whole[:point], whole[point:]+fraction)
		if isOfCall(t, now) || i == 0 && !t.IsZero() {
			return t, unit
		}
	}

	return time.Time{}, ""
}

// isOfCall reports whether a call that is accepted now can have this time.
func isOfCall(t, now time.Time) bool {
	return t.After(CallsBegan) && t.Before(now.Add(24*time.Hour))
}

// spansEnd is after every span.
var spansEnd = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

// SpanTime is UnixTime for a span: the zero time if no unit makes it one of this time. It is the same
// whenever the span is read.
func SpanTime(number string) (t time.Time, unit string) {
	t, unit = UnixTime(number, spansEnd)
	if t.Before(CallsBegan) || t.After(spansEnd) {
		return time.Time{}, ""
	}

	return t, unit
}

// unixTime reads seconds and the digits after the point; anything that is not a moment is the
// zero time. It reads the digits themselves, because a float64 has only microseconds at today's dates.
func unixTime(whole, fraction string) time.Time {
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || seconds < -1e12 || seconds > 1e12 {
		return time.Time{}
	}

	// Nine digits are nanoseconds.
	nanos, _ := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	if whole[0] == '-' {
		nanos = -nanos
	}

	t := time.Unix(seconds, nanos).UTC()
	if !isMoment(t) {
		return time.Time{}
	}
	return t
}

// Clip shortens a text to at most runesMax characters.
func Clip(text string, runesMax int) string {
	if utf8.RuneCountInString(text) <= runesMax {
		return text
	}

	return string([]rune(text)[:runesMax])
}

// OrZero returns a value that may be unknown; the zero value then.
func OrZero[T any](v *T) (value T) {
	if v == nil {
		return value
	}
	return *v
}

// OrNull returns a text that is null in JSON if it is empty.
func OrNull(text string) *string {
	if text == "" {
		return nil
	}

	// A copy, so that only texts that are not empty go to the heap.
	return new(text)
}
