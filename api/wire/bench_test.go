//go:build bench

package wire

import (
	"os"
	"testing"
)

// chatBody returns a track-request of about 4 KB, as an SDK sends it.
func chatBody(b *testing.B) []byte {
	b.Helper()
	body, err := os.ReadFile("testdata/chat.json")
	if err != nil {
		b.Fatal(err)
	}
	return body
}

// chatEvent returns the event of that request.
func chatEvent(b *testing.B) Event {
	b.Helper()
	return Event{
		ID:         NewID(),
		Kind:       KindRequest,
		RequestID:  NewID(),
		AcceptedAt: noon,
		Sidecar:    "pod-1",
		Body:       chatBody(b),
	}
}

func BenchmarkDecodeRequest(b *testing.B) {
	body := chatBody(b)

	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		object, err := ParseObject(body)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := DecodeRequest(object, true); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendLine(b *testing.B) {
	e := chatEvent(b)

	var line []byte
	b.SetBytes(int64(len(e.Body)))
	b.ReportAllocs()
	for b.Loop() {
		line = e.AppendLine(line[:0])
	}
}

func BenchmarkParseEvent(b *testing.B) {
	e := chatEvent(b)
	line := e.AppendLine(nil)

	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseEvent(line); err != nil {
			b.Fatal(err)
		}
	}
}
