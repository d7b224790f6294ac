package otel

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"promptspool/api/otlp"
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// event is a span's event, or a log record.
type event struct {
	name string
	time value
	attributes

	// body has a log record's members; of a span's event they are its attributes.
	body value
}

// at returns a member, of the body if it has one.
func (e event) at(name string) value {
	if v := e.body.at(name); !v.absent() {
		return v
	}

	return e.get(name)
}

// readEvents collects the span's events and its log records.
func (s *span) readEvents(logs value) {
	for _, e := range s.body.get("events").elements() {
		if !e.isObject() {
			continue
		}
		s.events = append(s.events, event{
			name:       e.at("name").text(),
			time:       e.at("timeUnixNano"),
			attributes: readAttributes(e.at("attributes")),
		})
	}
	for _, log := range logs.elements() {
		s.events = append(s.events, newEvent(log))
	}

	// The event with the details of an operation has attributes of its span, some of which that
	// may lack. There may be an event for what went in, and one for what came out.
	for _, e := range s.events {
		if e.name == otlp.Details {
			for _, all := range []attributes{readAttributes(e.body), e.attributes} {
				for _, key := range all.keys {
					s.own.add(key, all.get(key))
				}
			}
		}
	}
}

// HasDetails reports whether a stored log record is the event with the details of a call.
func HasDetails(stored wire.Object) bool {
	log, _ := stored.Get("log")
	return eventName(value(log)) == otlp.Details
}

// newEvent reads a log record.
func newEvent(log value) event {
	e := event{
		name:       eventName(log),
		time:       log.first("timeUnixNano", "observedTimeUnixNano"),
		attributes: readAttributes(log.at("attributes")),
	}
	if body := log.at("body"); body != nil {
		e.body = body.plain().inner()
	}

	return e
}

// eventName returns the name of the event that a log record is.
func eventName(log value) string {
	if name := log.at("eventName").text(); name != "" {
		return name
	}

	attributes := readAttributes(log.at("attributes"))

	return attributes.text("event.name")
}

// event returns the first event of a name, and an empty one if there is none.
func (s *span) event(name string) event {
	for _, e := range s.events {
		if e.name == name {
			return e
		}
	}

	return event{}
}

// JoinedMax is the most messages that Join gives a span, and the most evaluations. It keeps
// the first messages by time, and the last evaluations.
const JoinedMax = 256

// Join returns a stored span with its stored log records, as ReadObject reads it. It keeps those
// that were joined before. A stored log record has its log beside its resource and scope, and
// its index: the place in its POST, because exporters give all messages of a call the same
// moment. The records may come in any order, and some more than once.
func Join(body json.RawMessage, logs []json.RawMessage) json.RawMessage {
	if len(logs) == 0 || !jsonscan.Valid(body) {
		return body
	}

	var records []logRecord
	for _, raw := range logs {
		if jsonscan.Valid(raw) && value(raw).at("log").isObject() {
			records = append(records, newRecord(value(raw)))
		}
	}

	// Those of one moment are stored together, and come together each time.
	before, _ := jsonscan.Lookup(body, "logs")
	again := map[string]bool{}
	for i := range records {
		again[string(records[i].log)] = true
	}
	for _, log := range value(before).elements() {
		if !again[string(log)] {
			records = append(records, recordOf(log))
		}
	}

	slices.SortStableFunc(records, logRecord.compare)
	records = slices.CompactFunc(records, func(a, b logRecord) bool {
		return a.index == b.index && a.indexed && string(a.log) == string(b.log)
	})

	members := objectOf(value(body))
	members["logs"] = encoded(bounded(records))

	return json.RawMessage(encoded(members))
}

// bounded returns the logs of sorted records, as many as JoinedMax allows.
func bounded(records []logRecord) []value {
	evaluations := 0
	for i := range records {
		if records[i].evaluates {
			evaluations++
		}
	}

	logs, messages := []value{}, 0
	for i := range records {
		keep := messages < JoinedMax
		if records[i].evaluates {
			keep = evaluations <= JoinedMax
			evaluations--
		} else {
			messages++
		}
		if keep {
			logs = append(logs, records[i].log)
		}
	}

	return logs
}

// LogTime returns the time of a log record, zero if it has none.
func LogTime(log json.RawMessage) time.Time {
	if at := recordOf(value(log)).time; at > 0 {
		return time.Unix(0, at).UTC()
	}
	return time.Time{}
}

// Evaluates reports whether a stored log record is a judgement of its call.
func Evaluates(stored json.RawMessage) bool {
	return eventName(value(stored).at("log")) == otlp.Evaluation
}

// logRecord is a log record with what orders it.
type logRecord struct {
	log     value
	time    int64
	index   int64
	indexed bool

	evaluates bool
}

func newRecord(stored value) logRecord {
	r := recordOf(stored.at("log"))
	if index := stored.at("index").count(); index != nil {
		r.index, r.indexed = *index, true
	}

	return r
}

// recordOf returns the record of a log whose index is not known.
func recordOf(log value) logRecord {
	r := logRecord{
		log:       log,
		time:      nanos(log.at("timeUnixNano")),
		evaluates: eventName(log) == otlp.Evaluation,
	}
	if r.time == 0 {
		r.time = nanos(log.at("observedTimeUnixNano"))
	}

	return r
}

// nanos returns a moment as a number, 0 if it is unknown.
func nanos(v value) int64 {
	n, _ := strconv.ParseInt(v.shown(), 10, 64)
	return n
}

func (r logRecord) compare(other logRecord) int {
	return cmp.Or(cmp.Compare(r.time, other.time), cmp.Compare(r.index, other.index))
}

// objectOf returns the members of an object.
func objectOf(v value) map[string]value {
	members := map[string]value{}
	if v.isObject() {
		for m := range jsonscan.Members(json.RawMessage(v)) {
			members[m.Name] = value(m.Value)
		}
	}

	return members
}
