//go:build !race

package client

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"promptspool/api/admission"
	"promptspool/api/wire"
)

func TestHugeAnswersAreNotRead(t *testing.T) {
	padding := strings.Repeat(" ", syncAnswerBytesMax)
	_, err := serve(t, answer(200, padding+`{"success":true,"account":"acme"}`)).Verdict(t.Context(), key)
	wantAway(t, "an answer beyond the bound", err, wire.Away{Status: 200})

	within := `{"success":true,"account":"acme"}`
	if _, err := serve(t, answer(200, padding[len(within):]+within)).Verdict(t.Context(), key); err != nil {
		t.Errorf("an answer as long as the bound: %v", err)
	}

	if _, err := serve(t, answer(200, padding+`{"success":true}`)).Request(t.Context(), caller, "r"); err != nil {
		t.Errorf("a record of 4 MiB: %v", err)
	}
}

// There is no room for an answer that is announced as large, or turns out to be. Small ones
// come nevertheless.
func TestALargeAnswerIsReadOnlyIfThereIsRoom(t *testing.T) {
	const size = 2 << 20
	var asked atomic.Int32
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		length := size
		if r.URL.Query().Has("label") {
			length = 100
		}
		if r.URL.Query().Has("version") {
			w.(http.Flusher).Flush() // so that its length is not announced
		}
		fmt.Fprintf(w, `{"success":true,"prompt_name":"%s"}`, strings.Repeat("n", length))
	})

	r := admission.NewRoom(16<<20, 64<<20)
	others := r.Claim(false)
	if err := admission.TakeRoom(admission.WithRoom(t.Context(), &others), 16<<20); err != nil {
		t.Fatal(err)
	}
	ask := func(s wire.Selector, patience time.Duration) error {
		claim := r.Claim(false)
		defer claim.Release()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, err := c.Raw(admission.WithRoom(ctx, &claim), caller, "n", s)

		return err
	}

	if err := ask(wire.Selector{}, time.Second); !wire.IsCode(err, wire.CodeUnavailable) {
		t.Errorf("an answer of a known length: %v", err)
	}
	if err := ask(wire.Selector{Version: 1}, time.Second); !wire.IsCode(err, wire.CodeUnavailable) {
		t.Errorf("an answer of an unknown length: %v", err)
	}
	if err := ask(wire.Selector{Label: "small"}, time.Minute); err != nil {
		t.Errorf("a small answer: %v", err)
	}

	others.Release()
	for _, s := range []wire.Selector{{}, {Version: 1}} {
		claim := r.Claim(false)
		t.Cleanup(claim.Release)
		raw, err := c.Raw(admission.WithRoom(t.Context(), &claim), caller, "n", s)
		if err != nil || len(raw.Name) != size || !claim.Holds() {
			t.Errorf("when there is room: a name of %d bytes, %v; room is held: %v",
				len(raw.Name), err, claim.Holds())
		}
		claim.Release()
	}

	if asked.Load() != 5 {
		t.Errorf("the server was asked %d times", asked.Load())
	}
}
