// Package packedtest keeps packed files equal to what they hold.
package packedtest

import (
	"os"
	"testing"

	"github.com/klauspost/compress/zstd"

	"promptspool/api/wire/packed"
)

// Check compares a packed file with the text that it shall hold, and writes it first if
// update is set. An older file with the same text stays as it is.
func Check(t *testing.T, path, text string, update bool) {
	t.Helper()
	file, err := os.ReadFile(path)
	if err == nil && packed.Text(file)() == text {
		return
	}
	if !update {
		t.Errorf("%s differs from what it is made of (%v); run this test with -args -update", path, err)
		return
	}

	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, w.EncodeAll([]byte(text), nil), 0o644); err != nil {
		t.Fatal(err)
	}
}
