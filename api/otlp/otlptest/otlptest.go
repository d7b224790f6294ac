// Package otlptest reads requests of real OpenTelemetry libraries, which were recorded.
package otlptest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"promptspool/api/otlp"
)

// Payload is one recorded request.
type Payload struct {
	Name string // of its file, without the extension
	Path string
	Body []byte // unpacked
	Form otlp.Form
}

// Payloads returns the requests recorded in these folders.
func Payloads(t testing.TB, folders ...string) (all []Payload) {
	t.Helper()
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no payloads: %v", folder, err)
		}
		for _, file := range files {
			all = append(all, read(t, file))
		}
	}

	return all
}

// read reads the file of one payload.
func read(t testing.TB, file string) Payload {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Path string          `json:"path"`
		JSON json.RawMessage `json:"body_json"`
		Raw  []byte          `json:"body_base64"`
	}
	if err := json.Unmarshal(text, &recorded); err != nil {
		t.Fatal(file, err)
	}

	p := Payload{Name: strings.TrimSuffix(filepath.Base(file), ".json"), Path: recorded.Path}
	p.Body, p.Form = recorded.Raw, otlp.Protobuf
	if recorded.Raw == nil {
		p.Body, p.Form = recorded.JSON, otlp.JSON
	}
	if r, err := gzip.NewReader(bytes.NewReader(p.Body)); err == nil {
		p.Body, err = io.ReadAll(r)
		if err != nil {
			t.Fatal(file, err)
		}
	}

	return p
}
