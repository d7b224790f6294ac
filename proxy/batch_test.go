package proxy

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"

	"promptspool/spool/queue"
)

func TestABatchIsTheSameCompressedOnItsWay(t *testing.T) {
	random := make([]byte, 3*packingStep+7)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(random)
	for _, events := range [][][]byte{
		{random},
		{bytes.Repeat([]byte("text "), packingStep)},
		{[]byte("one\n"), {}, random[:packingStep], []byte("two\n")},
	} {
		p, want := &batch{}, []byte(nil)
		for _, data := range events {
			p.add(queue.Entry{Data: data})
			want = append(want, data...)
		}

		for range 2 { // each opening begins anew
			packed, err := io.ReadAll(iotest.HalfReader(newBatchReader(p)))
			if err != nil {
				t.Fatal(err)
			}

			decoder, err := zstd.NewReader(nil, zstd.WithDecoderMaxWindow(1<<20))
			if err != nil {
				t.Fatal(err)
			}
			got, err := decoder.DecodeAll(packed, nil)
			decoder.Close()
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes unpack to %d others: %v", len(want), len(got), err)
			}
		}
	}
}
