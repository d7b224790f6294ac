// What apps do with the helper of the page log-go; see case.py.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

type faulty struct{}

func (faulty) MarshalJSON() ([]byte, error) { panic("this type has a fault") }

type other struct {
	When time.Time
	Data []byte
}

func chunks() iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		_ = yield(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]string{"content": "He"}}}}, nil) &&
			yield(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]string{"content": "llo"}}}}, nil)
	}
}

func main() {
	spool := NewSpool(os.Getenv("PROMPTSPOOL_SIDECAR"), os.Getenv("PROMPTSPOOL_KEY"))
	var ids []string
	var waits []float64
	call := func(request any) *Call {
		return &Call{Function: "openai.chat.completions.create", Request: request, Tags: []string{"case"}}
	}
	timed := func(request any, ask func() (any, error)) error {
		began := time.Now()
		c := call(request)
		_, err := Log(spool, c, ask)
		waits = append(waits, float64(time.Since(began).Microseconds())/1000)
		if err == nil {
			ids = append(ids, c.ID)
		}
		return err
	}
	answers := func(v any) func() (any, error) { return func() (any, error) { return v, nil } }
	request := map[string]any{"model": "m"}

	// Values of all kinds.
	epoch := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	_ = timed(map[string]any{"model": "m", "when": epoch, "data": []byte{0, 255}}, answers(other{epoch, []byte("x")}))
	// A stream that is read, and one that is left.
	c := call(request)
	read := 0
	for range LogStream(spool, c, chunks()) {
		read++
	}
	ids = append(ids, c.ID)
	c = call(request)
	for range LogStream(spool, c, chunks()) {
		break
	}
	ids = append(ids, c.ID)
	// A call that fails fails as before.
	overloaded := errors.New("the model is overloaded")
	if err := timed(request, func() (any, error) { return nil, overloaded }); err != overloaded || read != 2 {
		fmt.Fprintln(os.Stderr, "the error is gone, or chunks are")
		os.Exit(1)
	}
	// Calls beside each other.
	var beside sync.WaitGroup
	asked := []*Call{call(request), call(request)}
	for _, c := range asked {
		beside.Go(func() { _, _ = Log(spool, c, answers("yes")) })
	}
	beside.Wait()
	ids = append(ids, asked[0].ID, asked[1].ID)
	// An answer that cannot be written as JSON cannot be logged, and harms nothing.
	_ = timed(request, answers(faulty{}))
	// A score needs no answer.
	spool.Send("/rest/track-score", map[string]any{"request_id": ids[0], "score": 1})
	// More than fits.
	more, _ := strconv.Atoi(os.Args[1])
	size, _ := strconv.Atoi(os.Args[2])
	for range more {
		spool.Send("/rest/track-score", map[string]any{"request_id": ids[0], "score": strings.Repeat("1", size)})
	}

	var ordinary []float64
	for range 20 {
		began := time.Now()
		_, _ = Log(spool, &Call{Function: "f", Request: request}, answers("yes"))
		ordinary = append(ordinary, float64(time.Since(began).Microseconds())/1000)
	}
	slices.Sort(ordinary)
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{
		"ids": ids, "median_ms": ordinary[10], "slowest_ms": slices.Max(slices.Concat(waits, ordinary)),
	})
	spool.Close(2 * time.Second)
}
