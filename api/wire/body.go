package wire

import (
	"cmp"
	"encoding/json"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"promptspool/api/wire/jsonscan"
)

// Limits of what is accepted. Beyond them a request gets a 422 that names the field, or a
// 413 for the body. Lengths are in characters (Runes) or bytes, as the names say.
const (
	NameRunesMax          = 512        // tag, label, template name, score name, group id
	MetadataKeyRunesMax   = 1024       // one metadata key
	MetadataValueBytesMax = 64 << 10   // one metadata value
	TagsMax               = 256        // tags of one request or template
	MetadataKeysMax       = 256        // metadata keys of one write
	MetadataBytesMax      = 256 << 10  // keys and values of the metadata of one write
	SidecarBytesMax       = 255        // name of a sidecar
	PriceMax              = 1_000_000  // dollars of one call, if the caller gives its price
	TokensMax             = 1e12       // of one call, in or out, if the caller gives them
	CallNameRunesMax      = 256        // session_id, user_id and environment of a call
	FirstTokenMax         = 86_400_000 // milliseconds of time_to_first_token_ms: a day
	FunctionNameRunesMax  = 1024       // function_name
	ObjectMembersMax      = 1000       // fields of a body, known and unknown
	JSONDepthMax          = 512        // nesting of a body
	BodyBytesMax          = 32 << 20   // a body, as sent and after decompression
	CommitMessageRunesMax = 512        // commit message of a template version
	ExternalIDsMax        = 32         // ids of one template in other systems
	SourceRunesMax        = 128        // the name of another system

	BatchEventsMax = 1000    // events of one POST /sync/events
	BatchBytesMax  = 4 << 20 // its bytes before compression; one larger event travels alone
	PageItemsMax   = 1000    // items of one page of a search or a list
	PageOffsetMax  = 100_000 // how deep page numbers reach; beyond it, use the cursor
)

// BatchBodyBytesMax bounds a decompressed POST /sync/events. It has space for one event
// with the largest body, and its envelope.
const BatchBodyBytesMax = BodyBytesMax + 1<<20

// Decode reads the members of a body that the fields of T name. A nil object, from an absent body,
// has none. Its error is CodeInvalid and lists every field at fault; it comes with what could be
// read. The description of the API is made of the same declaration: see member.
func Decode[T any](object Object) (T, error) {
	return decode[T](fields{object: object})
}

// DecodeQuery is Decode for a query string, which is an object of strings. An empty one is absent, and a
// name may come several times. A word that is not sent has no default: a sidecar asks the same of its server, which
// may be older and lack the word.
func DecodeQuery[T any](object Object) (T, error) {
	return decode[T](fields{object: object, isQuery: true, isAsked: true})
}

// DecodeForm is DecodeQuery for the form of a page, whose texts have no white space around them.
func DecodeForm[T any](form url.Values) (T, error) {
	f := fields{isQuery: true}
	for name, values := range form {
		for _, text := range values {
			text = strings.TrimSpace(text)
			if text != "" {
				f.object = append(f.object, jsonscan.Member{Name: name, Value: jsonscan.AppendString(nil, text)})
			}
		}
	}
	return decode[T](f)
}

// DecodeNamed is Decode for what has a name: in the path or, without one there, in the body.
func DecodeNamed[T any](object Object, name string) (T, error) {
	return decode[T](fields{object: object, name: name})
}

func decode[T any](f fields) (body T, err error) {
	f.read(&body)
	if c, ok := any(&body).(checker); ok {
		c.check(&f)
	}

	return body, f.err()
}

// checker is a body with rules beyond those of each member.
type checker interface{ check(f *fields) }

// member is a field of a body as its tags declare it. json has its name and, with omitempty, that it
// may be absent. jsonschema has its bounds and, where the Go type does not tell, its types in JSON.
// read is how it is read, if neither tells: "-" leaves it to the body's own decoder.
type member struct {
	name     string
	required bool
	index    []int
	read     string

	types       []string
	words       []string
	least, most float64
	absent      string // its value if it is absent
}

// declared has the members of each type that was decoded, by the type.
var declared sync.Map

// membersOf returns the members that the fields of a type declare.
func membersOf(t reflect.Type) []member {
	if all, ok := declared.Load(t); ok {
		return all.([]member)
	}

	var all []member
	for _, field := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		m := member{
			name:     name,
			required: options == "",
			index:    field.Index,
			read:     field.Tag.Get("read"),
			most:     BodyBytesMax,
		}
		if name == "" || name == "-" || m.read == "-" {
			continue
		}

		for rule := range strings.SplitSeq(field.Tag.Get("jsonschema"), ",") {
			m.declare(strings.Cut(rule, "="))
		}
		all = append(all, m)
	}
	declared.Store(t, all)

	return all
}

// declare takes one rule of the tag jsonschema.
func (m *member) declare(key, value string, _ bool) {
	switch key {
	case "type", "anyof_type":
		m.types = strings.Split(value, ";")
	case "enum":
		m.words = append(m.words, value)
	case "minimum":
		m.least, _ = strconv.ParseFloat(value, 64)
	case "maximum", "maxLength":
		m.most, _ = strconv.ParseFloat(value, 64)
	case "default":
		m.absent = value
	}
}

// read reads the members that the fields of a struct name. into points to it.
func (f *fields) read(into any) {
	to := reflect.ValueOf(into).Elem()
	for _, m := range membersOf(to.Type()) {
		f.readMember(&m, to.FieldByIndex(m.index).Addr().Interface())
	}
}

// readMember reads a member into a field.
func (f *fields) readMember(m *member, field any) {
	switch field := field.(type) {
	case *string:
		*field = f.readText(m)
	case *json.RawMessage:
		*field = f.readRaw(m)
	case *bool:
		*field = f.boolean(m.name, m.absent == "true")
	case **bool:
		if _, ok := f.raw(m.name, false); ok {
			*field = new(f.boolean(m.name, false))
		}
	case *int:
		*field = f.readInt(m)
	case **int64:
		*field = f.integer(m.name, int64(m.least), int64(m.most))
	case **float64:
		*field = f.number(m.name, m.least, m.most)
	case *uint64:
		*field = f.revision(m.name)
	case *time.Duration:
		*field = f.duration(m.name)
	case *time.Time:
		*field = f.readTime(m)
	case *[]string:
		*field = f.tags(m.name)
	case *map[string]string:
		*field = f.metadata(m.name, m.required)
	case *map[string]json.RawMessage:
		*field = f.values(m.name)
	case **Filter:
		*field = f.filter(m.name)
	case *[]ExternalID:
		*field = f.externalIDs(m.name)

	default:
		f.readInner(m, field)
	}
}

// readText reads a string.
func (f *fields) readText(m *member) string {
	switch {
	case m.read == "id":
		return f.requestID(m.required)
	case m.read == "hex":
		return f.hexID(m.name, int(m.most)/2)
	case m.read == "sort":
		return f.fitting(m.name, SortWords, IsSortField)
	case m.read == "rollup sort":
		return f.oneOf(m.name, RollupSortFields, false)
	case m.read == "name":
		return f.named(m)
	case m.words != nil:
		_, _ = f.raw(m.name, m.required)
		word := f.oneOf(m.name, m.words, m.read == "any case")

		if f.isAsked {
			return word
		}
		return cmp.Or(word, m.absent)
	case m.types != nil:
		return f.textOrInteger(m.name, m.required, int(m.most))
	default:
		return f.text(m.name, m.required, int(m.most))
	}
}

// readRaw reads a value that stays as it was sent.
func (f *fields) readRaw(m *member) json.RawMessage {
	switch {
	case m.read == "blueprint":
		return f.blueprint(m.name)
	case slices.Equal(m.types, []string{"number"}):
		if f.number(m.name, m.least, m.most) == nil {
			return nil
		}
		fallthrough
	case m.types == nil:
		v, ok := f.raw(m.name, m.required)
		if !ok {
			return nil
		}
		return v
	default:
		return f.ofType(m.name, m.required, m.types...)
	}
}

// readInt reads a version or, where nothing else than an integer fits, one within bounds; 0 if it is
// absent.
func (f *fields) readInt(m *member) int {
	if m.types != nil {
		return f.version(m.name, m.required)
	}
	n := f.integer(m.name, int64(m.least), int64(m.most))
	if n == nil {
		absent, _ := strconv.Atoi(m.absent)
		return absent
	}

	return int(*n)
}

// readTime reads a moment: that of a call, or one of a query.
func (f *fields) readTime(m *member) time.Time {
	if m.types != nil {
		return f.time(m.name, m.required)
	}
	return f.queryTime(m.name)
}

// readInner reads a required object into a struct. Faults name the field by its path in the whole body.
func (f *fields) readInner(m *member, into any) {
	if raw := f.json(m.name, m.required); raw != nil {
		f.readObject(m.name, raw, into)
	}
}

// readObject reads an object of a path in the body into a struct.
func (f *fields) readObject(path string, raw json.RawMessage, into any) {
	object, err := ParseObject(raw)
	inner := fields{object: object}
	if err != nil {
		// The body is valid JSON, so this is about one of the members.
		inner.errs = AsError(err).Fields
	} else {
		inner.read(into)
	}
	for _, e := range inner.errs {
		f.fault(path+"."+e.Field, "%s", e.Reason)
	}
}

// boolean reads true or false. A query may have 1 and 0.
func (f *fields) boolean(name string, absent bool) bool {
	v, ok := f.raw(name, false)
	if !ok {
		return absent
	}

	text := string(v)
	if f.isQuery {
		text = strings.ToLower(strings.Trim(text, `"`))
	}
	switch {
	case text == "true", f.isQuery && text == "1":
		return true
	case text != "false" && (!f.isQuery || text != "0"):
		f.fault(name, "must be true or false")
	}

	return false
}

// revision reads a revision from a query; 0 if it is absent.
func (f *fields) revision(name string) uint64 {
	text := f.text(name, false, math.MaxInt)
	n, err := strconv.ParseUint(text, 10, 64)
	if text != "" && err != nil {
		f.fault(name, "must be a revision: an integer of at least 0")
	}

	return n
}

// duration reads a duration from a query; 0 if it is absent.
func (f *fields) duration(name string) time.Duration {
	text := f.text(name, false, math.MaxInt)
	d, err := time.ParseDuration(text)
	if text != "" && (err != nil || d < 0) {
		f.fault(name, "must be a duration such as 30s")
	}

	return d
}

// queryTime reads a time in ISO 8601 from a query; zero if it is absent.
func (f *fields) queryTime(name string) time.Time {
	text := f.text(name, false, math.MaxInt)
	if text == "" {
		return time.Time{}
	}

	t, ok := ParseTime(text)
	if !ok {
		f.fault(name, "must be a time such as 2026-01-02T03:04:05Z")
	}

	return t
}
