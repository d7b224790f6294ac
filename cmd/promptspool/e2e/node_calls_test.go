//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"promptspool/api/wire"
)

// reply is a response of the API.
type reply struct {
	Status int
	Header http.Header
	Body   []byte
	JSON   map[string]any
}

// call sends a request as an app would. body may be a string, bytes or a value to encode
// as JSON.
func (n *node) call(method, path string, body any, header ...string) reply {
	n.t.Helper()
	r, err := n.try(method, path, body, header...)
	if err != nil {
		n.t.Fatalf("%s %s: %v", method, path, err)
	}
	return r
}

// try is call for a process that may not answer.
func (n *node) try(method, path string, body any, header ...string) (reply, error) {
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
			return reply{}, err
		}
		reader = bytes.NewReader(text)
	}

	req, err := http.NewRequest(method, "http://"+n.addr+path, reader)
	if err != nil {
		return reply{}, err
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}

	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()

	r := reply{Status: res.StatusCode, Header: res.Header}
	if r.Body, err = io.ReadAll(res.Body); err != nil {
		return reply{}, err
	}

	d := json.NewDecoder(bytes.NewReader(r.Body))
	d.UseNumber() // what was logged may hold numbers that do not fit in a float64
	if err := d.Decode(&r.JSON); err != nil {
		return reply{}, fmt.Errorf("the body of the %d response is not a JSON object: %q", r.Status, r.Body)
	}

	return r, nil
}

// track sends a write with a key in the body, and expects a 200. It returns the request's
// id, if any.
func (n *node) track(path, key string, fields map[string]any) string {
	n.t.Helper()
	body := map[string]any{"api_key": key}
	for k, v := range fields {
		body[k] = v
	}

	r := n.call("POST", path, body)
	if r.Status != 200 || r.JSON["success"] != true {
		n.t.Fatalf("%s: %d %s", path, r.Status, r.Body)
	}

	id, _ := r.JSON["request_id"].(string)
	return id
}

// get is an authenticated GET.
func (n *node) get(path string) reply {
	n.t.Helper()
	return n.call("GET", path, nil, "X-API-KEY", adminKey)
}

// record waits until the server has a record for which enough is true, and returns it.
func (n *node) record(id string, enough func(wire.Record) bool) wire.Record {
	n.t.Helper()
	var rec wire.Record
	var last reply
	n.eventually(func() bool {
		last = n.get("/api/public/v2/requests/" + id)
		rec = wire.Record{}
		return last.Status == 200 && json.Unmarshal(last.Body, &rec) == nil && enough(rec)
	}, func() string { return fmt.Sprintf("record %s: %d %s", id, last.Status, last.Body) })
	return rec
}

// events returns a condition for record: the record's history has count events.
func events(count int) func(wire.Record) bool {
	return func(r wire.Record) bool { return len(r.Events) == count }
}

// total returns how many records a search finds.
func (n *node) total(search any) int {
	n.t.Helper()
	return n.totalOf(adminKey, search)
}

// totalOf is total for another key.
func (n *node) totalOf(key string, search any) int {
	n.t.Helper()
	r := n.call("POST", "/api/public/v2/requests/search", search, "X-API-KEY", key)
	if r.Status != 200 {
		n.t.Fatalf("search: %d %s", r.Status, r.Body)
	}
	total, err := r.JSON["total"].(json.Number).Int64()
	if err != nil {
		n.t.Fatal(err)
	}
	return int(total)
}

// spoolStatus returns the status of a sidecar's spool.
func (n *node) spoolStatus() map[string]any {
	n.t.Helper()
	status, err := n.trySpoolStatus()
	if err != nil {
		n.t.Fatal(err)
	}
	return status
}

func (n *node) trySpoolStatus() (map[string]any, error) {
	res, err := http.Get("http://" + n.ops + "/statusz")
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	var status struct{ Spool map[string]any }

	err = json.NewDecoder(res.Body).Decode(&status)

	return status.Spool, err
}

// emptied waits until every event in the spool was delivered or set aside. It fails when
// no event leaves the spool for 30 s.
func (n *node) emptied() {
	n.t.Helper()
	n.whileItMoves(
		func() bool { return n.spoolStatus()["events"] == 0.0 },
		func() any { return n.spoolStatus()["frontier"] },
		func() string { return fmt.Sprint("the spool does not empty: ", n.spoolStatus()) },
	)
}

// whileItMoves waits for a condition as long as place returns another value every 30 s,
// however slow the machine is. When it stands still, it fails with the message.
func (n *node) whileItMoves(condition func() bool, place func() any, message func() string) {
	n.t.Helper()
	for last := any(nil); !condition(); {
		now := place()
		if now == last {
			n.t.Fatal(message())
		}
		last = now

		for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline) && !condition(); {
			pauseFor(10 * time.Millisecond)
		}
	}
}

// eventually waits for a condition, and fails with the message after two minutes.
func (n *node) eventually(condition func() bool, message func() string) {
	n.t.Helper()
	deadline := time.After(2 * time.Minute) // a busy machine is no fault
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()

	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			n.t.Fatal(message())
		}
	}
}

func score(id string, value int) map[string]any {
	return map[string]any{"request_id": id, "score": value}
}
