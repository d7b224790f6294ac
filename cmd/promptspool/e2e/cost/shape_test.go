//go:build linux

package cost

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/cmd/promptspool/e2e/openapi"
)

// Beside the attacks by name there are generated ones: for each route, every list and map of what
// it takes, and what every decoder reads, filled with their smallest elements. Their cost is
// bounded in itself: to accept them, and to read back what they stored.
//
// Where they come from: the API's description (its types), the examples of testdata/dialects, the
// tables of the dialects of spans, the messages of OTLP, the grammar of filter lines, the tokens of
// templates, and the frames of what is packed.

// The bounds. Those of one call besides are for what costs the same for each size, and for the
// first thousands of pieces, which are read however small they are.
const (
	shapeAccept     = 100 * time.Millisecond // of processor time, for a MB that is accepted
	shapeShow       = 150 * time.Millisecond // the same, for a MB of what is shown
	shapeRecord     = 150 * time.Microsecond // besides, for each record that is stored
	shapeCall       = 20 * time.Millisecond  // besides, for the call itself
	shapeLook       = 60 * time.Millisecond  // the same, for one that shows
	shapeGrowth     = 6                      // of processor time, of 4n to n
	shapeGrowthFrom = 10 * time.Millisecond  // what n counts for at least
	shapeBrief      = 64 << 10
	shapeLong       = 256 << 10
	shapeTries      = 3
)

// shape is a call with one list or map of any length.
type shape struct {
	name   string
	method string
	path   string
	header []string
	body   func(size int) string
	query  func(size int) string // instead of a body

	// records counts what a body stores; nil: one record at most.
	records func(body string) int
	// bounded is the processor time of what is refused beyond a size, besides.
	bounded time.Duration
	// most bounds the body in a test of large ones; 0: as any other.
	most int
	// looks are the ways to read back what was stored, by the id in the body; nil: none.
	looks func(id string) []look
}

// shapeID stands for the id of a shape's record, which is its tag, too.
const shapeID = "01010101-0101-7101-8101-010101010101"

// shapeTrace stands for the trace of a shape's spans in protobuf. Each has one of its own: that of
// others would be a record of ever more events.
const shapeTrace = "a trace of 16 B."

// look is a way to read back what was stored.
type look struct {
	name   string
	method string
	path   string
	body   string
}

// shaped is what a shape cost.
type shaped struct {
	shape  *shape
	size   int
	status int
	spent  map[string]time.Duration // of the processor, by the name of the look; "" to accept it
	bounds map[string]time.Duration
	stored time.Duration // what the records that it stores may take
}

// perMB returns the most seconds for each MB of some of what was done, beyond what records may take.
func (s *shaped) perMB(done func(name string) bool) (most float64) {
	for name, spent := range s.spent {
		if done(name) {
			if name == "" {
				spent -= min(spent, s.stored)
			}
			most = max(most, spent.Seconds()/(float64(s.size)/1e6))
		}
	}

	return most
}

func accepting(name string) bool { return name == "" }

func showing(name string) bool { return name != "" }

// fault returns what was dearer than its bound, "" if nothing was.
func (s *shaped) fault() string {
	var faults []string
	for name, spent := range inOrder(s.spent) {
		if spent > s.bounds[name] {
			faults = append(faults, fmt.Sprintf("%s takes %v of the processor, at most %v",
				cmp.Or(name, "to accept it"), spent.Round(time.Millisecond), s.bounds[name].Round(time.Millisecond)))
		}
	}

	return strings.Join(faults, "; ")
}

// least keeps the least that each thing cost in two trials: in one, the process may have done
// something else in its background.
func (s *shaped) least(again *shaped) {
	for name, spent := range again.spent {
		if before, ok := s.spent[name]; !ok || spent < before {
			s.spent[name] = spent
		}
	}
}

// trial sends a shape of a size, reads back what it stored, and measures both.
func (m meter) trial(p target, s *shape, size int) *shaped {
	id := wire.NewID()
	body, path := "", s.path
	if s.query != nil {
		path += "?" + s.query(size)
	} else {
		body = s.body(size)
	}
	trace := make([]byte, len(shapeTrace))
	_, _ = rand.Read(trace)
	own := strings.NewReplacer(shapeID, id, traceOf(shapeID), traceOf(id), shapeTrace, string(trace))
	body, path = own.Replace(body), own.Replace(path)

	result := &shaped{
		shape: s, size: len(body) + len(path),
		spent: map[string]time.Duration{}, bounds: map[string]time.Duration{},
	}
	mega := float64(result.size) / 1e6
	do := func(what, method, path, body string, header ...string) (status int) {
		before := m.processor()
		status, _ = p.call(method, path, body, header...)
		result.spent[what] = m.processor() - before
		return status
	}

	if s.records != nil {
		result.stored = time.Duration(s.records(body)) * shapeRecord
	}
	result.bounds[""] = time.Duration(mega*float64(shapeAccept)) + shapeCall + s.bounded + result.stored
	result.status = do("", s.method, path, body, s.header...)
	if s.looks == nil || result.status >= http.StatusMultipleChoices {
		return result
	}
	for _, l := range s.looks(id) {
		result.bounds[l.name] = time.Duration(mega*float64(shapeShow)) + shapeLook + s.bounded
		do(l.name, l.method, l.path, l.body)
	}

	return result
}

// judgeShape is trial until the shape is within its bounds, as often as is reasonable.
func (m meter) judgeShape(p target, s *shape, size int) *shaped {
	result := m.trial(p, s, size)
	for try := 1; try < shapeTries && result.fault() != ""; try++ {
		m.rest()
		result.least(m.trial(p, s, size))
	}

	return result
}

// recordLooks are the ways to read back the record id.
func recordLooks(id string) []look {
	tagged := `"filter_group":{"filters":[{"field":"tags","operator":"is","value":"` + id + `"}]}`
	csv := url.Values{"format": {"csv"}, "col": {"input", "output"}, "filter": {"tag:" + id}}
	list := url.Values{"col": {"input", "output"}, "filter": {"tag:" + id}}

	return []look{
		{"API", "GET", "/api/public/v2/requests/" + id, ""},
		{"page", "GET", "/requests/" + id, ""},
		{"search", "POST", "/api/public/v2/requests/search", `{"q":"zebra",` + tagged + `}`},
		{"export", "POST", "/api/public/v2/requests/export", `{` + tagged + `}`},
		{"CSV", "GET", "/requests/export?" + csv.Encode(), ""},
		{"list", "GET", "/requests?" + list.Encode(), ""},
	}
}

// spanLooks are the ways to read back the span of the trace id.
func spanLooks(id string) []look {
	var trace [16]byte
	_, _ = hex.Decode(trace[:], []byte(traceOf(id)))
	record := wire.SpanRecordID(trace, [8]byte{1, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef}, 1700000000000000000)

	return append(recordLooks(record),
		look{"trace", "GET", "/api/public/v2/traces/" + traceOf(id), ""},
		look{"trace page", "GET", "/traces/" + traceOf(id), ""})
}

// traceOf returns the trace of a shape's id, which is its digits.
func traceOf(id string) string { return strings.ReplaceAll(id, "-", "") }

// templateLooks are the ways to read back the template called id.
func templateLooks(id string) []look {
	return []look{
		{"template", "GET", "/prompt-templates/" + id, ""},
		{"fetch", "POST", "/prompt-templates/" + id, `{"input_variables":{},"provider":"openai","model":"m"}`},
		{"template page", "GET", "/template?name=" + id, ""},
		{"editor", "GET", "/template/edit?name=" + id, ""},
	}
}

// shapeKinds are all generated shapes but those of pages, by where they come from. First come those
// that ask for what is stored.
var shapeKinds = sync.OnceValue(func() [][]*shape {
	return [][]*shape{
		lineShapes(), schemaShapes(), packedShapes(), templateShapes(), eventShapes(), dialectShapes(), otlpShapes(),
	}
})

// generatedShapes are those of all kinds.
var generatedShapes = sync.OnceValue(func() []*shape { return slices.Concat(shapeKinds()...) })

// foundShapes are those that once were too dear, or have many parts of a new kind, by their names. They
// are part of the short form, at the size of the long one: most of a small body's bound is for the call itself.
var foundShapes = []string{
	`a call of completion, .prompt of "a"`,
	`a call of OpenAI chat, .messages[].tool_calls of []`,
	`a call of Bedrock Converse, .messages[].content[].toolResult.content of {}`,
	`a response of OpenAI chat stream,  of {"choices":[]}`,
	`a response of OpenAI chat stream,  of {"model":"m"}`,
	`a call of Titan,  of "%x":0`,
	`a response of a list of errors,  of {"error":{}}`,
	`a response of AI SDK stream,  of {"type":"error"}`,
	`a response of TGI stream,  of {"token":{}}`,
	`attribute ai.response.toolCalls of JSON, {}`,
	`attribute gen_ai.output.messages of JSON, {}`,
	`JSON /v1/logs of calls without spans`,
	`protobuf /v1/traces.resource_spans.scope_spans.spans.attributes.value.kvlist_value.values.value` +
		`.array_value.values of {double_value}`,
	`POST /api/public/v2/requests/search .filter_group.filters of 0`,
}

// briefShapes are the shapes of the short form: of each kind one for each route that it has, and
// those that once found something.
func briefShapes(kinds [][]*shape) (brief []*shape) {
	for _, kind := range kinds {
		routes := map[string]bool{}
		for _, s := range kind {
			route := s.method + " " + s.path
			if !routes[route] || slices.Contains(foundShapes, s.name) {
				brief = append(brief, s)
			}
			routes[route] = true
		}
	}

	return brief
}

// shapeTarget returns a server as a target for shapes, and makes what they name.
func shapeTarget(t *testing.T, server *harness.Node) target {
	t.Helper()
	transport := new(http.Transport)
	t.Cleanup(transport.CloseIdleConnections)
	// The calls are not compared with the API's description: many are not what it describes.
	p := target{t: t, addr: server.Addr, client: &http.Client{Transport: transport}}
	p.signIn(server)
	publish(p, "shaped", "hello")

	return p
}

func TestGeneratedShapesCostInProportionToTheirBytes(t *testing.T) {
	t.Parallel()
	server := harness.StartPlainServer(t, "127.0.0.1:0")
	p := shapeTarget(t, server)
	m := meter{t, server.Cmd.Process.Pid}
	m.rest()

	long := harness.Soak(t, 1) > 0
	kinds := append([][]*shape{pageShapes(p.csrf)}, shapeKinds()...)
	generated := slices.Concat(kinds...)
	shapes := generated
	if !long {
		shapes = briefShapes(kinds)
	}
	for _, name := range foundShapes {
		if !slices.ContainsFunc(shapes, func(s *shape) bool { return s.name == name }) {
			t.Errorf("there is no shape %q any more", name)
		}
	}

	var all []*shaped
	for _, s := range shapes {
		size := shapeBrief
		if long || slices.Contains(foundShapes, s.name) {
			size = shapeLong
		}
		result := m.judgeShape(p, s, size)
		all = append(all, result)
		if fault := result.fault(); fault != "" {
			t.Errorf("%s, %d bytes: %s", s.name, result.size, fault)
		}
		if long {
			m.wantLinear(p, result)
		}
	}
	t.Logf("%d of %d shapes", len(shapes), len(generated))
	logDearest(t, "to accept", all, accepting)
	logDearest(t, "to show", all, showing)

	if !long {
		return
	}
	var worst, slowest largely
	dear := slices.Concat(dearest(all, 10, accepting), dearest(all, 10, showing))
	for _, result := range append(dear, firstOfEach(all)...) {
		size := shapeLarge
		if result.shape.most > 0 {
			size = result.shape.most
		}
		l := largeTrial(t, result.shape, size)
		t.Log(l)
		if l.perByte() > worst.perByte() {
			worst = l
		}
		if l.delay > slowest.delay {
			slowest = l
		}
		if fault := l.fault(); fault != "" {
			t.Errorf("%s: %s", l.shape.name, fault)
		}
	}
	t.Logf("the most memory for a byte: %v", worst)
	t.Logf("the longest delay of another account's writes: %v", slowest)
}

// wantLinear compares a shape with one of a quarter of its size.
func (m meter) wantLinear(p target, whole *shaped) {
	p.t.Helper()
	isDear := func(quarter *shaped) (dear string) {
		for name, spent := range whole.spent {
			if spent > shapeGrowth*max(quarter.spent[name], shapeGrowthFrom) {
				dear = fmt.Sprintf("%q takes %v, a quarter of it %v", name, spent, quarter.spent[name])
			}
		}
		return dear
	}
	most := slices.Max(append(slices.Collect(maps.Values(whole.spent)), 0))
	if most <= shapeGrowth*shapeGrowthFrom {
		return
	}

	fault := ""
	for range shapeTries {
		if fault = isDear(m.trial(p, whole.shape, whole.size/4)); fault == "" {
			return
		}
		whole.least(m.trial(p, whole.shape, whole.size))
	}
	p.t.Errorf("%s grows faster than its bytes: %s", whole.shape.name, fault)
}

// dearest returns the n results with the most for a MB of what was done, of bodies.
func dearest(all []*shaped, n int, done func(name string) bool) []*shaped {
	var sorted []*shaped
	for _, s := range all {
		// A query is of a few bytes only, and what is refused at a size says nothing of a MB.
		if s.size >= shapeBrief/2 && s.perMB(done) > 0 {
			sorted = append(sorted, s)
		}
	}
	slices.SortStableFunc(sorted, func(a, b *shaped) int { return cmp.Compare(b.perMB(done), a.perMB(done)) })

	return sorted[:min(n, len(sorted))]
}

// firstOfEach returns the first result of each route that takes a body.
func firstOfEach(all []*shaped) (firsts []*shaped) {
	routes := map[string]bool{}
	for _, s := range all {
		if s.shape.query == nil && !routes[s.shape.path] {
			routes[s.shape.path] = true
			firsts = append(firsts, s)
		}
	}

	return firsts
}

func logDearest(t *testing.T, what string, all []*shaped, done func(name string) bool) {
	for _, s := range dearest(all, 10, done) {
		t.Logf("%s: %.3f s/MB, %s (%v)", what, s.perMB(done), s.shape.name, s.spent)
	}
}

// Each route that takes input has shapes, or a reason why it has none.
func TestEveryRouteHasShapes(t *testing.T) {
	shaped, older := map[string]bool{}, openapi.OlderRoutes()
	routes := servedRoutes()
	slices.SortStableFunc(routes, func(a, b string) int { return strings.Count(a, "{") - strings.Count(b, "{") })
	calls := map[string]bool{}
	for _, s := range slices.Concat(pageShapes(""), generatedShapes()) {
		calls[s.method+" "+s.path] = true
	}
	for call := range calls {
		fits := func(route string) bool { return routePattern(route).MatchString(call) }
		if i := slices.IndexFunc(routes, fits); i >= 0 {
			shaped[routes[i]] = true
		} else {
			t.Errorf("%s has shapes, but there is no such route", call)
		}
	}
	for _, route := range routes {
		if usual := older[route]; usual != "" && shaped[usual] {
			continue
		}
		if !shaped[route] && withoutInput[route] == "" {
			t.Errorf("%s has no shapes: describe it in e2e/openapi, or say in withoutInput why it needs none", route)
		}
	}
	for route := range withoutInput {
		if !slices.Contains(routes, route) {
			t.Errorf("withoutInput names %s, which is not served", route)
		}
	}
}
