//go:build linux

package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"promptspool/api/wire"
)

// Reply is a response of the API.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
	JSON   map[string]any
}

// Call sends a request as an app would. body may be a string, bytes or a value to encode
// as JSON.
func (n *Node) Call(method, path string, body any, header ...string) Reply {
	n.T.Helper()
	r, err := n.Try(method, path, body, header...)
	if err != nil {
		n.T.Fatalf("%s %s: %v", method, path, err)
	}
	return r
}

// Try is Call for a process that may not answer.
func (n *Node) Try(method, path string, body any, header ...string) (Reply, error) {
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	case []byte:
		reader = bytes.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			return Reply{}, err
		}
		reader = bytes.NewReader(text)
	}

	req, err := http.NewRequest(method, "http://"+n.Addr+path, reader)
	if err != nil {
		return Reply{}, err
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}

	client := http.DefaultClient
	if n.earlier {
		client = uncompared
	}
	res, err := client.Do(req)
	if err != nil {
		return Reply{}, err
	}
	defer res.Body.Close()

	r := Reply{Status: res.StatusCode, Header: res.Header}
	r.Body, err = io.ReadAll(res.Body)
	if err != nil {
		return Reply{}, err
	}

	d := json.NewDecoder(bytes.NewReader(r.Body))
	d.UseNumber() // what was logged may hold numbers that do not fit in a float64
	if err := d.Decode(&r.JSON); err != nil {
		return Reply{}, fmt.Errorf("the body of the %d response is not a JSON object: %q", r.Status, r.Body)
	}

	return r, nil
}

// Track sends a write with a key in the body, and expects a 200. It returns the request's
// id, if any.
func (n *Node) Track(path, key string, fields map[string]any) string {
	n.T.Helper()
	body := map[string]any{"api_key": key}
	for k, v := range fields {
		body[k] = v
	}

	r := n.Call("POST", path, body)
	if r.Status != 200 || r.JSON["success"] != true {
		n.T.Fatalf("%s: %d %s", path, r.Status, r.Body)
	}

	id, _ := r.JSON["request_id"].(string)
	return id
}

// Get is an authenticated GET.
func (n *Node) Get(path string) Reply {
	n.T.Helper()
	return n.Call("GET", path, nil, "X-API-KEY", AdminKey)
}

// Record waits until the server has a record for which enough is true, and returns it.
func (n *Node) Record(id string, enough func(wire.Record) bool) wire.Record {
	n.T.Helper()
	var rec wire.Record
	var last Reply
	n.Eventually(func() bool {
		last = n.Get("/api/public/v2/requests/" + id)
		rec = wire.Record{}
		return last.Status == 200 && json.Unmarshal(last.Body, &rec) == nil && enough(rec)
	}, func() string { return fmt.Sprintf("record %s: %d %s", id, last.Status, last.Body) })
	return rec
}

// Events returns a condition for Record: the record's history has count events.
func Events(count int) func(wire.Record) bool {
	return func(r wire.Record) bool { return len(r.Events) == count }
}

// Total returns how many records a search finds.
func (n *Node) Total(search any) int {
	n.T.Helper()
	return n.TotalOf(AdminKey, search)
}

// TotalOf is Total for another key.
func (n *Node) TotalOf(key string, search any) int {
	n.T.Helper()
	r := n.Call("POST", "/api/public/v2/requests/search", search, "X-API-KEY", key)
	if r.Status != 200 {
		n.T.Fatalf("search: %d %s", r.Status, r.Body)
	}
	total, err := r.JSON["total"].(json.Number).Int64()
	if err != nil {
		n.T.Fatal(err)
	}
	return int(total)
}

// SpoolStatus returns the status of a sidecar's spool.
func (n *Node) SpoolStatus() map[string]any {
	n.T.Helper()
	status, err := n.trySpoolStatus()
	if err != nil {
		n.T.Fatal(err)
	}
	return status
}

func (n *Node) trySpoolStatus() (map[string]any, error) {
	res, err := http.Get("http://" + n.Ops + "/statusz")
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	var status struct{ Spool map[string]any }

	err = json.NewDecoder(res.Body).Decode(&status)

	return status.Spool, err
}

// Emptied waits until every event in the spool was delivered or set aside. It fails when
// no event leaves the spool for 30 s.
func (n *Node) Emptied() {
	n.T.Helper()
	n.WhileItMoves(
		func() bool { return n.SpoolStatus()["events"] == 0.0 },
		func() any { return n.SpoolStatus()["frontier"] },
		func() string { return fmt.Sprint("the spool does not empty: ", n.SpoolStatus()) },
	)
}

// WhileItMoves waits for a condition as long as place returns another value every 30 s,
// however slow the machine is. When it stands still, it fails with the message.
func (n *Node) WhileItMoves(condition func() bool, place func() any, message func() string) {
	n.T.Helper()
	for last := any(nil); !condition(); {
		now := place()
		if now == last {
			n.T.Fatal(message())
		}
		last = now
		holdsWithin(30*time.Second, condition)
	}
}

// Eventually waits for a condition, and fails with the message after two minutes.
func (n *Node) Eventually(condition func() bool, message func() string) {
	n.T.Helper()
	if !holdsWithin(2*time.Minute, condition) { // a busy machine is no fault
		n.T.Fatal(message())
	}
}

// Score returns the body of a score for a request.
func Score(id string, value int) map[string]any {
	return map[string]any{"request_id": id, "score": value}
}

// With sets a field of a body, and returns the body.
func With(m map[string]any, key string, value any) map[string]any {
	m[key] = value
	return m
}

// SetupCode returns the code that a fresh server prints.
func SetupCode(server *Node) string {
	server.T.Helper()
	var found []string
	server.Eventually(func() bool {
		found = printedCode.FindStringSubmatch(server.printed())
		return found != nil
	}, func() string { return "no setup code is printed:\n" + server.printed() })
	return found[1]
}

var printedCode = regexp.MustCompile(`sign-up\?code=([a-z2-7-]+)`)

// Waiting returns how many events wait for the server, -1 if the process does not answer.
func (n *Node) Waiting() int {
	status, err := n.trySpoolStatus()
	if err != nil {
		return -1
	}
	return int(status["events"].(float64))
}
