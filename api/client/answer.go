package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"promptspool/api/wire"
)

// awayDelay is the RetryAfter of an unreachable server that named no time itself.
const awayDelay = time.Second

// read decodes an answer. It is the server's own only if it has the header
// Promptspool-Version and is JSON of the expected form: a proxy in between may answer
// with anything.
func (c *Client) read(res *http.Response, body []byte, bytesMax int, answer any) error {
	retryAfter := parseRetryAfter(res.Header.Get("Retry-After"), time.Now())
	if res.Header.Get("Promptspool-Version") == "" {
		return c.foreign(res.StatusCode, retryAfter)
	}
	if len(body) > bytesMax {
		return c.unusable(res.StatusCode, "it is larger than %d bytes; request less at once", bytesMax)
	}

	if res.StatusCode == http.StatusNoContent {
		return nil
	}
	if res.StatusCode/100 == 2 {
		// Without this, null and {} would pass for an answer of zeros.
		var mark struct{ Success bool }
		if err := json.Unmarshal(body, &mark); err != nil || !mark.Success {
			return c.unusable(res.StatusCode, "it is not JSON with success set to true")
		}

		if answer == nil {
			return nil
		}
		if err := json.Unmarshal(body, answer); err != nil {
			return c.unusable(res.StatusCode, "%v", err)
		}
		return nil
	}

	var refusal wire.ErrorBody
	if err := json.Unmarshal(body, &refusal); err != nil || refusal.Error == "" {
		return c.foreign(res.StatusCode, retryAfter)
	}

	e := &wire.Error{
		Code:       refusal.Error,
		Message:    refusal.Message,
		Fields:     refusal.Fields,
		RetryAfter: retryAfter,
		Affects:    refusal.Affects,
	}

	// A newer server may have codes that are not known here; the status is the next best
	// thing.
	if e.Status() == 500 && e.Code != wire.CodeInternal {
		e.Code = wire.CodeOfStatus(res.StatusCode)
	}

	return e
}

// unreachable returns the error of a request that got no complete answer.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		// Without method and URL; the message names the server.
		err = u.Err
	}

	next := "Is it running, and is the URL right?"
	if cause := context.Cause(ctx); cause != nil {
		// More precise than "context canceled" if the connection was silent.
		err = cause
		next = "The request was given up."
	}

	return &wire.Error{
		Code:       wire.CodeUnavailable,
		Message:    fmt.Sprintf("The server at %s did not answer: %v. %s", c.base, err, next),
		RetryAfter: awayDelay,
		Cause:      &wire.Away{Err: err},
	}
}

// foreign returns the error for an answer that is not the server's.
func (c *Client) foreign(status int, retryAfter time.Duration) error {
	format := "Something else than a promptspool server answered at %s, with status %d. " +
		"Check the URL, and any proxy in between."
	switch {
	case status == 413:
		format = "A proxy at %s answered with status %d: it lets only smaller bodies through. Raise its limit."
	case status >= 502 && status <= 504: // so answers a proxy while the server restarts
		format = "A proxy at %s answered with status %d: it does not reach the server, which may be restarting. " +
			"If this lasts, check the URL and the proxy."
	}

	return &wire.Error{
		Code:       wire.CodeUnavailable,
		Message:    fmt.Sprintf(format, c.base, status),
		RetryAfter: max(retryAfter, awayDelay),
		Cause:      &wire.Away{Status: status},
	}
}

// unusable returns the error for an answer that has the server's header but not its form,
// because it was changed on the way or is of an incompatible version.
func (c *Client) unusable(status int, format string, args ...any) error {
	problem := fmt.Sprintf(format, args...)

	return &wire.Error{
		Code: wire.CodeUnavailable,
		Message: fmt.Sprintf("The answer of the server at %s cannot be used: %s. "+
			"Check that its version fits this one (%s).", c.base, problem, c.userAgent),
		RetryAfter: awayDelay,
		Cause:      &wire.Away{Status: status},
	}
}

// parseRetryAfter reads both forms of the header; 0 if it is absent. The maximum is an
// hour.
func parseRetryAfter(header string, now time.Time) time.Duration {
	wait := time.Duration(0)
	if seconds, err := strconv.ParseUint(header, 10, 32); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(header); err == nil {
		wait = at.Sub(now)
	}

	return min(max(wait, 0), time.Hour)
}

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
