package api

import (
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

func TestABodyHasAsMuchTimeAsItsLengthNeeds(t *testing.T) {
	for length, want := range map[int]time.Duration{
		0:        15 * time.Second,
		4 << 10:  15*time.Second + time.Second/64,
		32 << 20: 143 * time.Second,
		1 << 40:  143 * time.Second,
		-1:       time.Minute,
	} {
		var h fasthttp.RequestHeader
		h.SetMethod("POST")
		h.SetContentLength(length)
		if got := bodyTime(&h).ReadTimeout; got != want {
			t.Errorf("%d bytes have %v, want %v", length, got, want)
		}
	}
}
