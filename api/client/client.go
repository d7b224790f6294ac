// Package client speaks to a promptspool server over HTTP. It gives the same capabilities as the server's own packages,
// so that a sidecar's forwarder and template cache, the commands and the tests use a server that is elsewhere as if
// it were here.
//
// Every error is a *wire.Error. One that the server itself gave carries the server's code and message. When the server
// could not be reached, or something between answered in its place (a proxy's 502 or login page), the error is
// CodeUnavailable and its chain holds a *wire.Away that says which. Nothing is retried here and no redirect is followed.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"promptspool/api/wire"
)

// answerBytesMax bounds what is read of an answer: a page of records with their bodies stays below it.
const answerBytesMax = 256 << 20

// Config says which server.
type Config struct {
	URL     string // http:// or https://, with a path in front of the routes if there is one
	Version string // of this program, sent as User-Agent
}

// Client speaks to one server. Safe for concurrent use.
type Client struct {
	base      string
	userAgent string
	http      *http.Client
}

// New checks the URL and makes a client. It starts nothing and calls nobody. The proxy variables of the environment are
// honoured (net/http: HTTPS_PROXY, NO_PROXY).
func New(c Config) (*Client, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("%q is not the URL of a server; give one such as http://127.0.0.1:8788", c.URL)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 8
	transport.ResponseHeaderTimeout = 90 * time.Second // above the longest poll
	transport.MaxResponseHeaderBytes = 64 << 10
	transport.DisableCompression = true
	return &Client{
		base:      strings.TrimRight(c.URL, "/"),
		userAgent: "promptspool/" + c.Version,
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}},
	}, nil
}

// Close lets go of idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// request is one call.
type request struct {
	method, path string
	key          wire.Secret
	body         []byte
	encoding     string // Content-Encoding of body
	answer       any    // where a good answer is decoded
}

// do makes the call and decodes the answer, or the server's error.
func (c *Client) do(ctx context.Context, r request) error {
	req, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path, bytes.NewReader(r.body))
	if err != nil {
		return wire.Errorf(wire.CodeInternal, "The call could not be made: %w", err)
	}
	req.Header.Set("User-Agent", c.userAgent)
	req.Header.Set("X-API-KEY", string(r.key))
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.encoding != "" {
		req.Header.Set("Content-Encoding", r.encoding)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return c.away(&wire.Away{Err: withoutURL(err)}, 0)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, answerBytesMax+1))
	if err != nil {
		return c.away(&wire.Away{Err: err}, 0)
	}
	retryAfter := parseRetryAfter(res.Header.Get("Retry-After"), time.Now())
	ours := res.Header.Get("Promptspool-Version") != "" && len(body) <= answerBytesMax
	if !ours || !json.Valid(body) {
		return c.away(&wire.Away{Status: res.StatusCode}, retryAfter)
	}
	if res.StatusCode/100 == 2 {
		if err := json.Unmarshal(body, r.answer); err != nil {
			return c.away(&wire.Away{Err: fmt.Errorf("the server's answer does not fit this version: %w", err)}, retryAfter)
		}
		return nil
	}
	return errorOf(res.StatusCode, body, retryAfter)
}

// errorOf reads an error of the server's.
func errorOf(status int, body []byte, retryAfter time.Duration) error {
	var e struct {
		Error   wire.Code         `json:"error"`
		Message string            `json:"message"`
		Fields  []wire.FieldError `json:"fields"`
	}
	if err := json.Unmarshal(body, &e); err != nil || e.Error == "" {
		e.Error = wire.CodeOfStatus(status)
	}
	return &wire.Error{Code: e.Error, Message: e.Message, Fields: e.Fields, RetryAfter: retryAfter}
}

func (c *Client) away(a *wire.Away, retryAfter time.Duration) error {
	e := &wire.Error{Code: wire.CodeUnavailable, RetryAfter: max(retryAfter, time.Second), Cause: a}
	if a.Err != nil {
		e.Message = fmt.Sprintf("The server at %s cannot be reached: %v. Is it running, and is the URL right?", c.base, a.Err)
	} else {
		e.Message = fmt.Sprintf("Something else than a promptspool server answered at %s, with status %d. Check the URL and what stands between.", c.base, a.Status)
	}
	return e
}

// withoutURL takes the method and URL off a client error; the message names the server already.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
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
