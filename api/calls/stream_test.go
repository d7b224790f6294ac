package calls_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"promptspool/api/calls"
	"promptspool/api/wire"
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

// Whatever the list: an element may be of three bytes, and each is looked at for many names. A message
// counts as four.
func TestNoMoreElementsOfAListAreReadThanABound(t *testing.T) {
	const most = 1 << 17
	for place, list := range map[string]struct {
		around string
		bound  int
	}{
		"choices": {`{"function_name":"f","request_response":{"choices":[%s]}}`, most / 4},
		// A part's message and its choice count, too.
		"parts": {`{"function_name":"f","request_response":{"choices":[{"message":{"content":[%s]}}]}}`, most - 4},
		"output": {
			`{"input":{"type":"chat","messages":[]},"output":{"type":"chat","messages":[%s]},` +
				`"provider":"p","model":"m"}`,
			most / 4,
		},
	} {
		read := func(n int) calls.Call {
			element := `{"content":"x","text":"x"}` + strings.Repeat(" ", 99)
			return calls.Read([]byte(fmt.Sprintf(list.around, repeated(n, element))))
		}

		if call := read(list.bound); !call.Readable || call.TooLong {
			t.Errorf("%s: %d are not read", place, list.bound)
		}
		if call := read(list.bound + 1); call.Readable || !call.TooLong || len(call.Output) > 0 || len(call.Raw) == 0 {
			t.Errorf("%s: of %d, readable %v, too long %v, %d outputs, %d bytes raw",
				place, list.bound+1, call.Readable, call.TooLong, len(call.Output), len(call.Raw))
		}
	}

	call := calls.Read([]byte(`{"function_name":"f","kwargs":{"messages":[` +
		repeated(most, `{"role":"user","content":"x"}`) + `]},"request_response":"Hello."}`))
	// One more element is met where it is asked whether these are messages.
	if got := len(call.Input); got < most/4-1 || got > most/4 || !call.Readable {
		t.Errorf("of a longer input, %d messages are read, and the response is readable: %v", got, call.Readable)
	}
}

// Of elements of a few bytes, fewer are read.
func TestTheShorterTheElementsTheFewerAreRead(t *testing.T) {
	for n, want := range map[int]int{2000: 2000, 100_000: (8192+400_026/24)/4 + 1} {
		call := calls.Read([]byte(`{"kwargs":{"model":"a","prompt":[` + repeated(n, `"a"`) + `]}}`))
		if len(call.Input) != want {
			t.Errorf("%d prompts of %d are read, want %d", len(call.Input), n, want)
		}
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
