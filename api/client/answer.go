package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"promptspool/api/wire"
)

// awayDelay is after how long whoever waits for a server that is away may ask again, when nobody named a time.
const awayDelay = time.Second

// read decodes an answer. It is the server's own only if it carries Promptspool-Version and is JSON of our shape.
func (c *Client) read(res *http.Response, body []byte, bytesMax int, answer any) error {
	retryAfter := parseRetryAfter(res.Header.Get("Retry-After"), time.Now())
	if res.Header.Get("Promptspool-Version") == "" {
		return c.foreign(res.StatusCode, retryAfter)
	}
	if len(body) > bytesMax {
		return c.unusable(res.StatusCode, "it is larger than %d bytes; ask for less at once", bytesMax)
	}
	if lines, ok := answer.(*jsonLines); ok && res.StatusCode/100 == 2 {
		for line := range bytes.Lines(body) {
			if line = bytes.TrimSpace(line); !json.Valid(line) {
				return c.unusable(res.StatusCode, "line %d is not JSON", len(*lines)+1)
			}
			*lines = append(*lines, line)
		}
		return nil
	}
	if res.StatusCode == http.StatusNoContent {
		return nil
	}
	if res.StatusCode/100 == 2 {
		var mark struct{ Success bool } // null and {} would otherwise pass for an answer of zeros
		if err := json.Unmarshal(body, &mark); err != nil || !mark.Success {
			return c.unusable(res.StatusCode, "it is not JSON that says success")
		}
		if answer == nil {
			return nil
		}
		if err := json.Unmarshal(body, answer); err != nil {
			return c.unusable(res.StatusCode, "%v", err)
		}
		return nil
	}
	var told wire.ErrorBody
	if err := json.Unmarshal(body, &told); err != nil || told.Error == "" {
		return c.foreign(res.StatusCode, retryAfter)
	}
	e := &wire.Error{Code: told.Error, Message: told.Message, Fields: told.Fields, RetryAfter: retryAfter}
	if e.Status() == 500 && e.Code != wire.CodeInternal {
		e.Code = wire.CodeOfStatus(res.StatusCode) // a newer server's code: its status says the kind
	}
	return e
}

// unreachable is the error of a call that got no whole answer.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err // without method and URL; the message names the server
	}
	next := "Is it running, and is the URL right?"
	if cause := context.Cause(ctx); cause != nil {
		err = cause // says more than "context canceled" when the call was too silent
		next = "The call was given up."
	}
	return &wire.Error{Code: wire.CodeUnavailable, RetryAfter: awayDelay, Cause: &wire.Away{Err: err},
		Message: fmt.Sprintf("The server at %s did not answer: %v. %s", c.base, err, next)}
}

// foreign is the error of an answer that is not the server's.
func (c *Client) foreign(status int, retryAfter time.Duration) error {
	return &wire.Error{Code: wire.CodeUnavailable, RetryAfter: max(retryAfter, awayDelay), Cause: &wire.Away{Status: status},
		Message: fmt.Sprintf("Something else than a promptspool server answered at %s, with status %d. Check the URL, and what stands between.", c.base, status)}
}

// unusable is the error of an answer that carries the server's mark and still cannot be its own, or not of a version that fits.
func (c *Client) unusable(status int, format string, args ...any) error {
	return &wire.Error{Code: wire.CodeUnavailable, RetryAfter: awayDelay, Cause: &wire.Away{Status: status},
		Message: fmt.Sprintf("The answer of the server at %s cannot be used: %s. Check that its version fits this one (%s).", c.base, fmt.Sprintf(format, args...), c.userAgent)}
}

// parseRetryAfter reads both forms of the header; 0 if there is none. More than an hour counts as an hour.
func parseRetryAfter(header string, now time.Time) time.Duration {
	wait := time.Duration(0)
	if seconds, err := strconv.ParseUint(header, 10, 32); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(header); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), time.Hour)
}
