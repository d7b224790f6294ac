// Package client speaks to a promptspool server over HTTP. It gives the same capabilities as the server's own packages,
// so that a sidecar's forwarder and template cache, the commands and the tests use a server that is elsewhere as if
// it were here.
//
// Every error is a *wire.Error. One that the server itself gave carries the server's code and message. When the server
// could not be reached, or something between answered in its place (a proxy's 502 or login page), the error is
// CodeUnavailable and its chain holds a *wire.Away that says which. Nothing is retried here and no redirect is followed.
// No error tells the key.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"promptspool/api/room"
	"promptspool/api/wire"
)

const (
	answerBytesMax     = 64 << 20         // of an answer: a record or template with its body, a page of rows
	syncAnswerBytesMax = 4 << 20          // of what a sidecar asks all the time; 1,000 refusals with their reasons fit
	silenceMax         = 90 * time.Second // without a byte sent or received, then a call is given up; above the longest poll
	keyBytesMax        = 4 << 10          // of a key; no server has a longer one
)

var errSilent = fmt.Errorf("nothing was heard for %v", silenceMax)

// Config says which server.
type Config struct {
	URL     string           // http:// or https://, with a path in front of the routes if there is one
	Version string           // of this program, sent as User-Agent
	TLS     *tls.Config      // for https://; nil: the system's authorities, no certificate of our own
	Now     func() time.Time // the clock whose skew is measured; nil means time.Now
}

// Client speaks to one server. Safe for concurrent use. A call ends when its context does, or when nothing was heard for 90 s.
type Client struct {
	base      string
	userAgent string
	http      *http.Client
	now       func() time.Time
	skew      skew
}

// New checks the URL and makes a client. It starts nothing and calls nobody. The proxy variables of the environment are
// honoured (net/http: HTTPS_PROXY, NO_PROXY).
func New(c Config) (*Client, error) {
	base, err := baseOf(c.URL)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 8
	transport.MaxResponseHeaderBytes = 64 << 10
	transport.DisableCompression = true
	if c.Now == nil {
		c.Now = time.Now
	}
	transport.TLSClientConfig = c.TLS
	return &Client{
		now:       c.Now,
		base:      base,
		userAgent: "promptspool/" + c.Version,
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}},
	}, nil
}

// baseOf is what every route is put behind. The error shows a URL with a password in it only without the password.
func baseOf(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", errors.New("this is not a URL; give one such as http://127.0.0.1:8788")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return "", fmt.Errorf("%q is not the URL of a server; give one such as http://127.0.0.1:8788", u.Redacted())
	case u.User != nil || strings.ContainsAny(text, "?#"):
		return "", fmt.Errorf("%q holds more than a server's address; leave out user, query and fragment", u.Redacted())
	}
	return strings.TrimRight(text, "/"), nil
}

// Close lets go of idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// request is one call.
type request struct {
	method, path   string
	query          url.Values
	key            wire.Secret
	body           []byte           // nil: none
	json           any              // instead of body, what is encoded as JSON
	stream         func() io.Reader // instead of body, one of unknown length
	encoding       string           // Content-Encoding of body
	answer         any              // where a good answer is decoded
	answerBytesMax int              // 0: the constant of that name
}

func get(id wire.Identity, path string, query url.Values) request {
	return request{method: "GET", path: path, query: query, key: id.Key}
}

func post(id wire.Identity, path string, body any) request {
	return request{method: "POST", path: path, key: id.Key, json: body}
}

// ask makes a call and returns its answer.
func ask[T any](ctx context.Context, c *Client, r request) (answer T, err error) {
	r.answer = &answer
	err = c.do(ctx, r)
	return answer, err
}

// errNotJSON is the error of a filter or a template that holds something else than JSON.
func errNotJSON(err error) error {
	return wire.Errorf(wire.CodeBadJSON, "The body is not JSON: %w.", err)
}

// do makes the call and decodes the answer, or the server's error.
func (c *Client) do(ctx context.Context, r request) error {
	if !canTravel(r.key) {
		return errNoKey
	}
	if r.json != nil {
		var err error
		if r.body, err = encode(r.json); err != nil {
			return errNotJSON(err)
		}
	}

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(silenceMax, func() { cancel(errSilent) })
	defer silence.Stop()
	req, err := c.newRequest(ctx, r, silence)
	if err != nil {
		return wire.Errorf(wire.CodeInternal, "The call could not be made: %w", err)
	}
	sent := c.now()
	res, err := c.http.Do(req)
	if err != nil {
		return c.unreachable(ctx, err)
	}
	c.skew.learn(sent, c.now(), res.Header.Get(wire.TimeHeader))
	defer res.Body.Close()
	most := answerBytesMax
	if r.answerBytesMax > 0 {
		most = r.answerBytesMax
	}
	body, err := readAnswer(ctx, io.LimitReader(&heard{res.Body, silence}, int64(most)+1), res.ContentLength)
	if e := (*wire.Error)(nil); errors.As(err, &e) {
		return err // there is no room for it
	}
	if err != nil {
		return c.unreachable(ctx, err)
	}
	return c.read(res, body, most, r.answer)
}

const (
	answerCopies = 5         // of an answer: as it came, decoded, and encoded for the next caller
	answerPart   = 256 << 10 // bytes of an answer of unknown length that are read before more room is taken
)

// readAnswer reads an answer to its end. Before it reads a large one it takes the room
// for what is made of it.
func readAnswer(ctx context.Context, r io.Reader, length int64) ([]byte, error) {
	var body bytes.Buffer
	if length > 0 && length <= answerBytesMax {
		if err := room.Admit(ctx, answerCopies*int(length)); err != nil {
			return nil, err
		}
		body.Grow(int(length) + bytes.MinRead)
	}

	for {
		_, err := io.CopyN(&body, r, answerPart)
		if err == io.EOF {
			return body.Bytes(), nil
		}
		if err == nil {
			err = room.Admit(ctx, answerCopies*body.Len())
		}
		if err != nil {
			return nil, err
		}
	}
}

var errNoKey = wire.Errorf(wire.CodeUnauthorized, "This is no key: it is too long, or holds a line break or another control character. Check that it was copied whole, and nothing else with it.")

// canTravel says whether a header can carry the key to a server. One that cannot is refused here, as every server would: it must
// not look like a server that is away.
func canTravel(key wire.Secret) bool {
	return len(key) <= keyBytesMax && !strings.ContainsFunc(string(key), func(r rune) bool { return r < ' ' || r == 0x7f })
}

func (c *Client) newRequest(ctx context.Context, r request, silence *time.Timer) (*http.Request, error) {
	target := c.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", c.userAgent)
	req.Header.Set("X-API-KEY", string(r.key))
	if r.encoding != "" {
		req.Header.Set("Content-Encoding", r.encoding)
	}
	open, length := r.stream, int64(-1)
	if r.body != nil {
		open, length = func() io.Reader { return bytes.NewReader(r.body) }, int64(len(r.body))
	}
	if open != nil {
		req.Header.Set("Content-Type", "application/json")
		req.ContentLength = length
		// With GetBody a call goes out again by itself if its idle connection turns out closed before anything was sent.
		req.GetBody = func() (io.ReadCloser, error) {
			return io.NopCloser(&heard{open(), silence}), nil
		}
		req.Body, _ = req.GetBody()
	}
	return req, nil
}

// heard winds the timer up whenever a byte passes.
type heard struct {
	io.Reader
	silence *time.Timer
}

func (h *heard) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if n > 0 {
		h.silence.Reset(silenceMax)
	}
	return n, err
}
