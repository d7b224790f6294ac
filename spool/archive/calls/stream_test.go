package calls_test

import (
	"context"
	"strings"
	"testing"

	"promptspool/api/wire"
	"promptspool/spool/archive/calls"
	"promptspool/spool/archive/query"
)

// streamOf returns a call whose response is a stream of so many chunks, each of one letter.
func streamOf(chunks int) []byte {
	chunk := `,{"choices":[{"delta":{"content":"x"}}]}`
	return []byte(`{"function_name":"f","request_response":[` + strings.Repeat(chunk, chunks)[1:] + `]}`)
}

func TestAStreamOfTooManyChunksStaysAsItCame(t *testing.T) {
	const most = 1 << 17
	if call := calls.Read(streamOf(most)); !call.Readable || call.TooLong || len(call.Output[0].Text()) != most {
		t.Errorf("a stream of %d chunks is not assembled", most)
	}

	call := calls.Read(streamOf(most + 1))
	if call.Readable || !call.TooLong || len(call.Output) > 0 || len(call.Raw) == 0 {
		t.Errorf("a longer one: readable %v, too long %v, %d outputs, %d bytes raw",
			call.Readable, call.TooLong, len(call.Output), len(call.Raw))
	}
}

func TestAReadingEndsWithItsCaller(t *testing.T) {
	object, err := wire.ParseObject(streamOf(100_000))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if call := calls.ReadObject(ctx, object); len(call.Output) != 1 || len(call.Output[0].Text()) > 10_000 {
		t.Errorf("most of the stream was read")
	}

	// A search takes no part of a body for the whole.
	s := query.Subject{Context: ctx, Body: func() ([]byte, error) { return streamOf(100_000), nil }}
	if content := s.Read(); !s.Cut() || content.Output != "" {
		t.Errorf("cut %v, with %d bytes of text", s.Cut(), len(content.Output))
	}
}
