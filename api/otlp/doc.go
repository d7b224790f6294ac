// Package otlp decodes the spans and log records of OpenTelemetry's OTLP, in protobuf and
// in JSON, into the JSON that is stored.
//
// That JSON is the body of a span's event. It holds the span with its scope and resource,
// and loses nothing that OTLP defines. Both encodings of the same span give the same
// bytes, which is how a span that was sent twice is recognised.
//
//	{"resource":{"attributes":[KV ...],"droppedAttributesCount":1},"resourceSchemaUrl":"",
//	 "scope":{"name":"","version":"","attributes":[KV ...],"droppedAttributesCount":1},
//	 "scopeSchemaUrl":"",
//	 "span":{"traceId":"32 hex digits","spanId":"16 hex digits","traceState":"",
//	  "parentSpanId":"16 hex digits","flags":1,"name":"","kind":3,
//	  "startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000001500000000",
//	  "attributes":[KV ...],"droppedAttributesCount":1,
//	  "events":[{"timeUnixNano":"","name":"","attributes":[],"droppedAttributesCount":1}],
//	  "droppedEventsCount":1,
//	  "links":[{"traceId":"","spanId":"","traceState":"","attributes":[],
//	   "droppedAttributesCount":1,"flags":1}],"droppedLinksCount":1,
//	  "status":{"message":"","code":2}}}
//
// Members come in this order. Empty and zero values are left out, except resource, scope,
// span and the span's traceId, spanId and name. KV is {"key":"k","value":V}, and V one of
//
//	{"stringValue":"s"} {"boolValue":true} {"intValue":"25"} {"doubleValue":0.5}
//	{"arrayValue":{"values":[V ...]}} {"kvlistValue":{"values":[KV ...]}}
//	{"bytesValue":"base64"} {}
//
// A log record that is an event about a model call has its own body, with these members
// in place of span:
//
//	"log":{"timeUnixNano":"","observedTimeUnixNano":"","severityNumber":9,"severityText":"",
//	 "eventName":"gen_ai.choice","body":V,"attributes":[KV ...],"droppedAttributesCount":1,
//	 "flags":1,"traceId":"32 hex digits","spanId":"16 hex digits"},"index":0
//
// index is its place among the log records of its span in the request. With the ids, it is
// always there.
//
// A log record of a coding agent (Claude Code, Codex, Gemini CLI) has the body of a span, with the
// record's name and attributes. It is in the record's trace or, without one, in that of its
// session, below its prompt.
//
// # What is not as it should be
//
// A bad value is kept, and never costs more than itself:
//
//   - Text that is not UTF-8, or has half of a surrogate pair, has U+FFFD in its place. Its
//     bytes are not kept: secrets would not be found in them.
//   - A double that is not a number is "NaN", "Infinity" or "-Infinity", or null if it was.
//   - A value that is not of the type that its member names is {"stringValue":"as it was
//     sent"}. Bytes are always as they were sent in JSON.
//   - An enum that is not known is kept as the number or the text that it was. So is the id
//     of a parent or a link.
//   - An unreadable time is left out, and so is such an enum or id of more than 64 bytes.
//
// The value of an attribute whose key names a credential is {"stringValue":"[masked]"}.
// Other secrets, within texts, are found by package secrets.
//
// Only a span whose trace or span id is missing, zero or of another length is refused,
// one that is not protobuf or is nested deeper than 100, and one that becomes too large.
// The others of its request are not affected. The same holds for log records, of which
// those that are not about model calls are dropped. The ids of a span that an evaluation or the
// details of a call lack are made up.
//
// Nothing here does I/O. Time and memory are linear in the bytes of the request.
package otlp
