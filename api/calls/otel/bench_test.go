//go:build bench

package otel_test

import (
	"testing"

	"promptspool/api/calls/otel"
)

func BenchmarkRead(b *testing.B) {
	body := stored(b, payloads(b)["otel-python-openai"])[1]
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		otel.Read(body)
	}
}
