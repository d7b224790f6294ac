//go:build linux

package cost

import (
	"slices"
	"strconv"
	"strings"
	"time"

	logspb "go.opentelemetry.io/proto/slim/otlp/logs/v1"
	metricspb "go.opentelemetry.io/proto/slim/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"promptspool/api/calls/otel/dialect"
	"promptspool/api/otlp"
)

// otlpMessages are the messages of OTLP, by the paths that take them. A TracesData has the same
// fields as the ExportTraceServiceRequest of a call.
var otlpMessages = map[string]protoreflect.MessageDescriptor{
	"/v1/traces":  new(tracepb.TracesData).ProtoReflect().Descriptor(),
	"/v1/logs":    new(logspb.LogsData).ProtoReflect().Descriptor(),
	"/v1/metrics": new(metricspb.MetricsData).ProtoReflect().Descriptor(),
}

// otlpDepth bounds how often a message may be within itself, as values of lists are.
const otlpDepth = 2

// depths counts how often a message is around itself.
type depths map[protoreflect.FullName]int

// otlpBounded is what a body costs besides: each of its bytes becomes up to seven of what is stored,
// until that has as many as a body may have.
const otlpBounded = 60 * time.Millisecond

// otlpShapes are the shapes of OTLP in both encodings, by its own schema, and of the attributes that
// are read of spans.
func otlpShapes() (all []*shape) {
	for path, message := range inOrder(otlpMessages) {
		for _, f := range protoFillings(message, depths{}) {
			all = append(all, &shape{
				name:   "protobuf " + path + f.place + " of " + f.element,
				method: "POST", path: path, header: []string{"Content-Type", "application/x-protobuf"},
				body:    func(size int) string { return string(f.fill(size)) },
				records: recordsOf(f.place, f.bytes),
				bounded: otlpBounded,
			})
		}

		example := protoExample(message, depths{})
		for _, f := range fillings(example) {
			all = append(all, &shape{
				name: "JSON " + path + " " + f.String(), method: "POST", path: path,
				header: []string{"Content-Type", "application/json"}, body: f.text,
				records: recordsOf(f.place, len(f.element)),
				bounded: otlpBounded,
			})
		}
	}

	for what, element := range inOrder(map[string]string{
		"of a coding agent": `{"body":{"stringValue":"claude_code.a"}}`,
		"of calls without spans": `{"eventName":"gen_ai.client.inference.operation.details","attributes":[` +
			attributeOf("gen_ai.request.model", "a") + `]}`,
	}) {
		records := filling{
			place:   "logRecords",
			before:  `{"resourceLogs":[{"scopeLogs":[{"logRecords":[`,
			element: element,
			after:   `]}]}]}`,
		}
		all = append(all, &shape{
			name: "JSON /v1/logs " + what, method: "POST", path: "/v1/logs",
			header:  []string{"Content-Type", "application/json"},
			body:    records.text,
			records: recordsOf(records.place, len(element)),
			bounded: otlpBounded,
		})
	}

	for _, key := range attributesRead() {
		for _, value := range append(smallest, `{"role":"user","content":"a"}`, `{"type":"text","text":"a"}`) {
			list := filling{place: key, before: `[`, element: value, after: `]`}
			all = append(all, attributeShape(key, " of JSON, "+value, func(size int) string {
				return attributeOf(strings.NewReplacer("N", "0", "M", "0", "*", "a").Replace(key), list.text(size))
			}))
		}
		// As many attributes as its indices allow, or the same one again and again.
		all = append(all, attributeShape(key, ", as many as possible", func(size int) string {
			var b strings.Builder
			for i := 0; b.Len() < size; i++ {
				if i > 0 {
					b.WriteByte(',')
				}
				n := strconv.Itoa(i)
				b.WriteString(attributeOf(strings.NewReplacer("N.", n+".", "M.", n+".", "*", n).Replace(key), "a"))
			}
			return b.String()
		}))
	}

	return all
}

// recordsOf counts the records of a body whose list at a place has elements of so many bytes; nil if
// they are no records of their own.
func recordsOf(place string, bytes int) func(body string) int {
	name := place[strings.LastIndexByte(place, '.')+1:]
	if !slices.Contains([]string{"spans", "log_records", "logRecords"}, name) {
		return nil
	}

	return func(body string) int { return min(len(body)/bytes, otlp.ItemsMax) }
}

// attributeOf returns an attribute with a text as its value.
func attributeOf(key, value string) string {
	return `{"key":` + quoted(key) + `,"value":{"stringValue":` + quoted(value) + `}}`
}

// attributeShape is the shape of a span with these attributes beside those of a model call. One whose
// key only agents write is of an agent.
func attributeShape(key, what string, attributes func(size int) string) *shape {
	name := "n"
	for _, d := range dialect.All {
		read := slices.ContainsFunc(d.Table, func(a dialect.Attribute) bool { return a.Key == key }) ||
			slices.ContainsFunc(d.Output, func(s dialect.Source) bool { return s.Key == key })
		if len(d.Of) > 0 && read {
			name = "gemini_cli.api_response"
		}
	}

	return &shape{
		name:   "attribute " + key + what,
		method: "POST",
		path:   "/v1/traces",
		header: []string{"Content-Type", "application/json"},
		looks:  spanLooks,
		body: func(size int) string {
			return `{"resourceSpans":[{"scopeSpans":[{"scope":{"name":"a"},"spans":[{"traceId":"` + traceOf(shapeID) +
				`","spanId":"0123456789abcdef","name":"` + name + `","startTimeUnixNano":"1700000000000000000",` +
				`"endTimeUnixNano":"1700000001000000000","attributes":[` +
				`{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},` +
				attributeOf("tags", "["+quoted(shapeID)+"]") + "," + attributes(size) + `]}]}]}]}`
		},
	}
}

// attributesRead are the keys of attributes that the dialects of spans name in their tables.
func attributesRead() (keys []string) {
	add := func(key string) {
		if !slices.Contains(keys, key) && !strings.ContainsAny(key, " /") {
			keys = append(keys, key)
		}
	}
	for _, d := range dialect.All {
		for _, a := range d.Table {
			add(a.Key)
		}
		for _, from := range slices.Concat(d.Input, d.Output) {
			add(from.Key)
		}
	}

	return keys
}

// protoFilling is a message with one repeated field that has any number of elements.
type protoFilling struct {
	place, element string
	bytes          int // of an element
	fill           func(size int) []byte
}

// protoFillings returns a message with each of its repeated fields filled with each of its
// smallest elements.
func protoFillings(m protoreflect.MessageDescriptor, depth depths) (all []protoFilling) {
	depth[m.FullName()]++
	defer func() { depth[m.FullName()]-- }()
	if depth[m.FullName()] > otlpDepth {
		return nil
	}

	head := protoHead(m)
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		place := "." + string(f.Name())
		if f.IsList() {
			for name, element := range inOrder(protoElements(f)) {
				all = append(all, protoFilling{place, name, len(element), func(size int) []byte {
					return append(slices.Clone(head), repeatedBytes(element, size)...)
				}})
			}
		}
		if f.Message() == nil {
			continue
		}
		for _, inner := range protoFillings(f.Message(), depth) {
			all = append(all, protoFilling{place + inner.place, inner.element, inner.bytes, func(size int) []byte {
				b := protowire.AppendTag(slices.Clone(head), f.Number(), protowire.BytesType)
				return protowire.AppendBytes(b, inner.fill(size))
			}})
		}
	}

	return all
}

// repeatedBytes returns as many elements as size bytes have.
func repeatedBytes(element []byte, size int) []byte {
	return slices.Repeat(element, max(1, size/len(element)))
}

// protoHead is what a message must have to be kept.
func protoHead(m protoreflect.MessageDescriptor) (b []byte) {
	text := func(number protowire.Number, text string) {
		b = protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), text)
	}
	switch m.Name() {
	case "Span":
		text(1, shapeTrace)
		text(2, shapeTrace[:8])
	case "LogRecord":
		text(9, shapeTrace)
		text(10, shapeTrace[:8])
		text(12, "gen_ai.choice")
	}

	return b
}

// protoElements returns the smallest elements of a repeated field: an empty one, and for each
// field of a message one that has it.
func protoElements(f protoreflect.FieldDescriptor) map[string][]byte {
	all := map[string][]byte{}
	add := func(name string, element []byte) {
		b := protowire.AppendTag(nil, f.Number(), protowire.BytesType)
		all[name] = protowire.AppendBytes(b, element)
	}
	if f.Message() == nil && wireType(f) != protowire.BytesType {
		add("packed numbers", make([]byte, 8))
		all["a number"] = append(protowire.AppendTag(nil, f.Number(), wireType(f)), make([]byte, 8)...)
		if wireType(f) == protowire.VarintType {
			all["a number"] = append(protowire.AppendTag(nil, f.Number(), wireType(f)), 0)
		}
		return all
	}

	head := []byte{}
	if f.Message() != nil {
		head = protoHead(f.Message())
		for i := range f.Message().Fields().Len() {
			inner := f.Message().Fields().Get(i)
			b := protowire.AppendTag(slices.Clone(head), inner.Number(), wireType(inner))
			switch wireType(inner) {
			case protowire.BytesType:
				b = protowire.AppendBytes(b, nil)
			case protowire.VarintType:
				b = protowire.AppendVarint(b, 1)
			case protowire.Fixed64Type:
				b = protowire.AppendFixed64(b, 1)
			case protowire.Fixed32Type:
				b = protowire.AppendFixed32(b, 1)
			}
			add("{"+string(inner.Name())+"}", b)
		}
	}
	add("{}", nil)
	if len(head) > 0 {
		add("{ids}", head)
	}

	return all
}

// wireType returns how a field is encoded.
func wireType(f protoreflect.FieldDescriptor) protowire.Type {
	switch f.Kind() {
	case protoreflect.MessageKind, protoreflect.StringKind, protoreflect.BytesKind:
		return protowire.BytesType
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return protowire.Fixed64Type
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return protowire.Fixed32Type
	default:
		return protowire.VarintType
	}
}

// protoExample returns an example of a message in JSON, with all of its fields.
func protoExample(m protoreflect.MessageDescriptor, depth depths) any {
	depth[m.FullName()]++
	defer func() { depth[m.FullName()]-- }()
	object := map[string]any{}
	if depth[m.FullName()] > otlpDepth {
		return object
	}

	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		var value any
		switch {
		case f.Message() != nil:
			value = protoExample(f.Message(), depth)
		case f.Kind() == protoreflect.StringKind || f.Kind() == protoreflect.BytesKind:
			value = "a"
		default:
			value = 1
		}
		switch name := f.JSONName(); {
		case name == "traceId" && m.Name() != "Link":
			value = traceOf(shapeID)
		case name == "spanId" && m.Name() != "Link":
			value = "0123456789abcdef"
		case name == "eventName":
			value = "gen_ai.choice"
		}
		if f.IsList() {
			value = []any{value}
		}
		object[f.JSONName()] = value
	}

	return object
}
