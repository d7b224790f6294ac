//go:build bench

package secrets

import (
	"bytes"
	"encoding/base64"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"promptspool/api/wire"
)

// chatBody returns a track-request of about 4 KB, as an SDK sends it.
func chatBody(b *testing.B) []byte {
	b.Helper()
	body, err := os.ReadFile("../testdata/chat.json")
	if err != nil {
		b.Fatal(err)
	}
	return body
}

// BenchmarkAcceptChat does everything that happens to the bytes of a track-request
// before it is spooled.
func BenchmarkAcceptChat(b *testing.B) {
	body := chatBody(b)

	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		object, err := wire.ParseObject(body)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := wire.DecodeRequest(object, true); err != nil {
			b.Fatal(err)
		}
		Strip(bytes.Clone(body), object)
	}
}

// BenchmarkStrip strips the secrets from bodies of 4 KB and 1 MB: chats, and one with a
// picture.
func BenchmarkStrip(b *testing.B) {
	chat := string(chatBody(b))
	long := strings.Replace(chat, "Be short.",
		strings.Repeat("The quick brown fox: \\\"a-b_c\\\".\\n", 1<<15), 1)

	noise := make([]byte, 3<<18)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	picture := strings.Replace(chat, "Be short.", base64.StdEncoding.EncodeToString(noise), 1)

	for _, bb := range []struct{ name, body string }{{"4KB", chat}, {"1MB", long}, {"1MB-picture", picture}} {
		b.Run(bb.name, func(b *testing.B) {
			object, err := wire.ParseObject([]byte(bb.body))
			if err != nil {
				b.Fatal(err)
			}

			body := make([]byte, len(bb.body))
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				copy(body, bb.body)
				Strip(body, object)
			}
		})
	}
}
