package compress_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"promptspool/spool/database/compress"
)

func newCodec(t testing.TB) *compress.Codec {
	t.Helper()
	codec, err := compress.New(1)
	if err != nil {
		t.Fatal(err)
	}
	return codec
}

// against packs a body against another.
func against(t testing.TB, codec *compress.Codec, base, body string) (packed, packedBase []byte) {
	t.Helper()
	packedBase = codec.Body([]byte(base))
	p, err := codec.NewPacker([16]byte{1}, [16]byte{2}, packedBase)
	if err != nil {
		t.Fatal(err)
	}
	return p.Pack([]byte(body)), packedBase
}

func TestABodyIsReadWithItsBaseOnly(t *testing.T) {
	text := strings.Repeat("all work and no play, ", 500)
	packed, base := against(t, newCodec(t), text+"the end", text)

	for name, c := range map[string]struct {
		base []byte
		want error
	}{
		"its base":     {base, nil},
		"no base":      {nil, compress.ErrBase},
		"another body": {newCodec(t).Body([]byte(text + "the end of it")), compress.ErrBase},
	} {
		got, err := newCodec(t).UnpackBody(packed, nil, func(b compress.Base) ([]byte, error) {
			if b.Request != [16]byte{1} || b.Event != [16]byte{2} || int(b.Bytes) != len(base) {
				t.Errorf("it is packed against %+v", b)
			}
			return c.base, nil
		})
		if !errors.Is(err, c.want) || c.want == nil && string(got) != text {
			t.Errorf("with %s the body is %.60q (%v)", name, got, err)
		}
	}
}

func TestABodyFarIntoALargeBaseIsFound(t *testing.T) {
	codec := newCodec(t)
	for _, size := range []int{10 << 10, 100 << 10, 600 << 10, 3 << 20} {
		// Nothing in it repeats.
		text := make([]byte, size)
		x := uint64(1)
		for i := range text {
			x = x*6364136223846793005 + 1442695040888963407
			text[i] = byte(x >> 56)
		}
		packed, _ := against(t, codec, string(text)+"end", string(text))
		if len(packed) > size/10 {
			t.Errorf("a body of %d bytes takes %d against one that has all of it", size, len(packed))
		}
	}
}

func TestTheSizeOfABodyIsKnownWithoutUnpackingIt(t *testing.T) {
	codec := newCodec(t)
	for _, body := range []string{"", "{}", strings.Repeat("a", 256), strings.Repeat("a", 100_000)} {
		if got := compress.Size(codec.Body([]byte(body))); got != len(body) {
			t.Errorf("a body of %d bytes has the size %d", len(body), got)
		}
	}
}

// Whatever a disk makes of values, reading them ends with a body or an error.
func FuzzUnpackBody(f *testing.F) {
	text := strings.Repeat("all work and no play, ", 50)
	packed, base := against(f, newCodec(f), text, text[7:])
	f.Add(packed, base)
	f.Add(packed[:20], base[:20])
	f.Add(base, packed)

	f.Fuzz(func(t *testing.T, packed, base []byte) {
		codec := newCodec(t)
		read := func(compress.Base) ([]byte, error) { return base, nil }
		first, err := codec.UnpackBody(packed, nil, read)
		again, errAgain := codec.UnpackBody(packed, make([]byte, 10), read)
		if !bytes.Equal(first, again) || (err == nil) != (errAgain == nil) {
			t.Errorf("the same value is %q (%v), and then %q (%v)", first, err, again, errAgain)
		}
		compress.Size(packed)
	})
}
