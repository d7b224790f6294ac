//go:build !linux || portable

package rawlog

import (
	"errors"
	"io"
	"os"
)

// withoutBad returns the content of a mapped file with zeros in the place of its bad parts. A
// file that has some is copied, without them.
func withoutBad(file *os.File, data []byte, bad []Span) ([]byte, error) {
	if len(bad) == 0 {
		return data, nil
	}

	content := make([]byte, len(data))
	good := int64(0)
	for _, span := range append(bad, Span{int64(len(data)), int64(len(data))}) {
		if _, err := file.ReadAt(content[good:span.From], good); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		good = span.End
	}

	return content, nil
}
