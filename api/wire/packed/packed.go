// Package packed reads files that the binary carries compressed, because it must stay small.
//
// Beside each such file stands the one that people read and change. A test of the package
// that embeds it compares the two, with Check, and writes the packed one with -update.
package packed

import (
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Text unpacks a text once, when it is first asked for. It panics if the file is not whole,
// which the test of its package would have found.
func Text(file []byte) func() string {
	return sync.OnceValue(func() string {
		reader, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
		if err != nil {
			panic("packed: " + err.Error())
		}
		defer reader.Close()

		text, err := reader.DecodeAll(file, nil)
		if err != nil {
			panic("packed: " + err.Error())
		}
		return string(text)
	})
}
