// Package openapitest notes what tests send and are answered, to be compared with the description of the API.
package openapitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync"

	"promptspool/metrics/partstest"
)

// Exchange is a call and its answer.
type Exchange struct {
	Test         string // whose call it was
	Method, Path string
	Status       int
	ContentType  string // of the answer
	Sent, Answer []byte // Sent is empty where it was compressed, or large
}

// Transport is an http.RoundTripper that notes the calls that pass through it. It ignores
// answers that are not from promptspool, compressed ones, and those larger than a MiB.
type Transport struct {
	http.RoundTripper
	Note func(Exchange) // may be called by several goroutines at once; owns the bytes
}

const notedBytesMax = 1 << 20

// RoundTrip notes a call once its answer has been read to its end.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.RoundTripper.RoundTrip(req)
	if err != nil || res.Header.Get("Promptspool-Version") == "" || res.Header.Get("Content-Encoding") != "" {
		return res, err
	}

	// The body has been sent by now.
	var sent []byte
	compressed := req.Header.Get("Content-Encoding") != ""
	if req.GetBody != nil && req.ContentLength <= notedBytesMax && !compressed {
		if body, err := req.GetBody(); err == nil {
			sent, _ = io.ReadAll(body)
		}
	}

	// A caller may stop reading: then there is no whole answer to note.
	res.Body = &recordedBody{ReadCloser: res.Body, end: func(body []byte) {
		t.Note(Exchange{
			Method:      req.Method,
			Path:        req.URL.EscapedPath(),
			Status:      res.StatusCode,
			ContentType: res.Header.Get("Content-Type"),
			Sent:        sent,
			Answer:      body,
		})
	}}

	return res, nil
}

// CloseIdleConnections is called by http.Client.CloseIdleConnections.
func (t *Transport) CloseIdleConnections() {
	if inner, ok := t.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		inner.CloseIdleConnections()
	}
}

// recordedBody keeps what is read from a body, and calls end with it at the body's end.
type recordedBody struct {
	io.ReadCloser
	seen bytes.Buffer
	end  func(body []byte)
}

func (r *recordedBody) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if r.seen.Len() <= notedBytesMax {
		r.seen.Write(p[:n])
	}

	// Readers may read again after the end.
	if errors.Is(err, io.EOF) && r.end != nil && r.seen.Len() <= notedBytesMax {
		r.end(r.seen.Bytes())
		r.end = nil
	}

	return n, err
}

// Recorder collects the calls of a package's tests. Safe for concurrent use.
type Recorder struct {
	mu    sync.Mutex
	calls bytes.Buffer // under mu; Exchanges in JSON
}

// Note adds a call.
func (r *Recorder) Note(e Exchange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := json.NewEncoder(&r.calls).Encode(e); err != nil {
		panic(err) // it has no type that cannot be encoded
	}
}

// Check has the program of partstest.Tools compare the calls with the description, which takes a
// library of schemas.
func (r *Recorder) Check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls.Len() == 0 {
		return nil
	}

	tools, err := partstest.Tools()
	if err != nil {
		return err
	}
	file, err := os.CreateTemp("", "calls-*.json")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if _, err := file.Write(r.calls.Bytes()); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	if out, err := exec.Command(tools, "description", file.Name()).CombinedOutput(); err != nil {
		return fmt.Errorf("the description of the API differs: %w\n%s", err, out)
	}

	return nil
}
