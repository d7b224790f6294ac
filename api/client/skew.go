package client

import (
	"sync"
	"time"
)

// skewKept is how long a good measurement is kept against a worse one.
const skewKept = time.Minute

// skew is how far this clock is ahead of the server's. An answer bounds it from both
// sides, because it was made between the moments when the request was sent and when its
// answer came: the quicker the request, the better. Safe for concurrent use.
type skew struct {
	mu    sync.Mutex
	known bool
	ahead time.Duration
	error time.Duration // at most this far off
	at    time.Time
}

// learn measures the skew by the server's time in an answer, if it has one.
func (s *skew) learn(sent, received time.Time, told string) {
	server, err := time.Parse(time.RFC3339Nano, told)
	if err != nil {
		return
	}

	// The server's time is of some moment between the request and its answer.
	width := max(0, received.Sub(sent)) / 2

	s.mu.Lock()
	defer s.mu.Unlock()

	// A recent, more precise measurement is better.
	if old := received.Sub(s.at); s.known && width > s.error && old >= 0 && old < skewKept {
		return
	}

	s.known, s.ahead, s.error, s.at = true, received.Sub(server)-width, width, received
}

// Skew returns how far this clock is ahead of the server's, and the maximum error of
// that. known is false before the first answer.
func (c *Client) Skew() (ahead, uncertain time.Duration, known bool) {
	c.skew.mu.Lock()
	defer c.skew.mu.Unlock()

	return c.skew.ahead, c.skew.error, c.skew.known
}
