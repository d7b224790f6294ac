package openapitest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
)

// Transport is an http.RoundTripper that checks the requests that pass through it. It ignores
// answers that are not from promptspool, and those larger than a MiB.
type Transport struct {
	http.RoundTripper
	Checker *Checker
	Report  func(error) // may be called by several goroutines at once
}

const checkedBytesMax = 1 << 20

// RoundTrip checks a request once its answer has been read to its end.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.RoundTripper.RoundTrip(req)
	if err != nil || res.Header.Get("Promptspool-Version") == "" || !t.checks(req, res) {
		return res, err
	}

	// The body has been sent by now. Compressed ones are not compared.
	var sent []byte
	compressed := req.Header.Get("Content-Encoding") != ""
	if req.GetBody != nil && req.ContentLength <= checkedBytesMax && !compressed {
		if body, err := req.GetBody(); err == nil {
			sent, _ = io.ReadAll(body)
		}
	}

	// A caller may stop reading: then there is no whole answer to check.
	res.Body = &recordedBody{ReadCloser: res.Body, end: func(body []byte) {
		path := req.URL.EscapedPath()
		err := t.Checker.CheckAnswer(req.Method, path, res.StatusCode, res.Header, body)
		if err == nil && res.StatusCode < 300 {
			err = t.Checker.CheckRequest(req.Method, path, sent)
		}
		if err != nil {
			t.Report(fmt.Errorf("%s %s: %w\nsent: %.2000s\nanswer: %.2000s",
				req.Method, path, err, sent, body))
		}
	}}

	return res, nil
}

// CloseIdleConnections is called by http.Client.CloseIdleConnections.
func (t *Transport) CloseIdleConnections() {
	if inner, ok := t.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		inner.CloseIdleConnections()
	}
}

// checks reports whether an answer is one of the API. Other pages have no operation, and
// a request with a wrong method or with headers that cannot be read has none either.
func (t *Transport) checks(req *http.Request, res *http.Response) bool {
	_, known := t.Checker.find(req.Method, req.URL.EscapedPath())
	undescribed := []int{http.StatusMethodNotAllowed, http.StatusRequestHeaderFieldsTooLarge}

	return known && res.Header.Get("Content-Encoding") == "" && !slices.Contains(undescribed, res.StatusCode)
}

// recordedBody keeps what is read from a body, and calls end with it at the body's end.
type recordedBody struct {
	io.ReadCloser
	seen bytes.Buffer
	end  func(body []byte)
}

func (r *recordedBody) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if r.seen.Len() <= checkedBytesMax {
		r.seen.Write(p[:n])
	}

	// Readers may read again after the end.
	if errors.Is(err, io.EOF) && r.end != nil && r.seen.Len() <= checkedBytesMax {
		r.end(r.seen.Bytes())
		r.end = nil
	}

	return n, err
}
