// Package client calls a promptspool server over HTTP. It has the same capabilities as
// the server's own packages, so that the forwarder, the template cache, the commands and
// the tests use a remote server like a local one.
//
// Every error is a *wire.Error. Errors of the server have its code and message. If the
// server could not be reached, or something in between answered instead (a proxy's 502 or
// a login page), the error is wire.CodeUnavailable and its chain has a *wire.Away with
// the reason.
//
// The package does not retry, follows no redirects, and reveals the key in no error.
//
// Other modules may import it. From the first release on, it changes only by adding.
package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"promptspool/api/admission"
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

const (
	answerBytesMax     = 64 << 20         // of an answer: a record or template with its body, a page of rows
	syncAnswerBytesMax = 4 << 20          // of a sidecar's frequent requests: 1,000 refusals with reasons fit
	silenceMax         = 90 * time.Second // without a byte sent or received; longer than the longest poll
	keyBytesMax        = 4 << 10          // of a key; no server has longer ones
)

var errSilent = fmt.Errorf("nothing was heard for %v", silenceMax)

// Config configures a Client.
type Config struct {
	URL     string           // http:// or https://, optionally with a path in front of the routes
	Version string           // of this program, sent as User-Agent
	TLS     *tls.Config      // for https://; nil means the system's authorities, no client certificate
	Now     func() time.Time // the clock whose skew is measured; nil means time.Now
}

// Client calls one server. It is safe for concurrent use. A request ends with its context,
// or after 90 s of silence on its connection.
type Client struct {
	base      string
	userAgent string
	http      *http.Client
	now       func() time.Time
	skew      skew
}

// New returns a client for the server at config's URL, without calling it. Like net/http
// it uses the proxy of the environment (HTTPS_PROXY, NO_PROXY).
func New(c Config) (*Client, error) {
	base, err := baseOf(c.URL)
	if err != nil {
		return nil, err
	}

	if c.Now == nil {
		c.Now = time.Now
	}

	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 8
	transport.MaxResponseHeaderBytes = 64 << 10
	transport.TLSClientConfig = c.TLS

	// If net/http unpacked answers, it would hide their length, by which readAnswer reserves
	// memory.
	transport.DisableCompression = true

	// A redirect is an answer that is not the server's; see foreign.
	noRedirects := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

	return &Client{
		now:       c.Now,
		base:      base,
		userAgent: "promptspool/" + c.Version,
		http:      &http.Client{Transport: transport, CheckRedirect: noRedirects},
	}, nil
}

// baseOf returns what precedes every route. Errors do not show the password of a URL.
func baseOf(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", errors.New("this is not a URL; give one such as http://127.0.0.1:8788")
	}

	switch {
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return "", fmt.Errorf("%q is not the URL of a server; give one such as http://127.0.0.1:8788",
			u.Redacted())
	case u.User != nil || strings.ContainsAny(text, "?#"):
		return "", fmt.Errorf("%q has more than a server's address; leave out user, query and fragment",
			u.Redacted())
	}

	return strings.TrimRight(text, "/"), nil
}

// URL returns the address of a path at the server.
func (c *Client) URL(path string) string { return c.base + path }

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Call calls a route and returns its answer as it came. target is a path with a query, escaped; a
// nil body is none.
func (c *Client) Call(
	ctx context.Context, id wire.Identity, method, target string, body []byte,
) (json.RawMessage, error) {
	return ask[json.RawMessage](ctx, c, request{method: method, path: target, key: id.Key, body: body})
}

// request is one HTTP request.
type request struct {
	method, path   string
	query          any // nil: none; otherwise what wire.DecodeQuery reads
	key            wire.Secret
	body           []byte           // nil: none
	json           any              // instead of body: a value to encode as JSON
	stream         func() io.Reader // instead of body: one of unknown length
	encoding       string           // Content-Encoding of body
	answer         any              // where to decode a successful answer
	answerBytesMax int              // 0: the constant of that name
}

func get(id wire.Identity, path string, query any) request {
	return request{method: "GET", path: path, query: query, key: id.Key}
}

func post(id wire.Identity, path string, body any) request { return send("POST", id, path, body) }

// send is a request with a body, nil for none.
func send(method string, id wire.Identity, path string, body any) request {
	return request{method: method, path: path, key: id.Key, json: body}
}

// kept is the path of what a project keeps, such as its views, or of the one with this name.
func kept(of string, name ...string) string {
	path := "/api/public/v2/" + of
	for _, n := range name {
		path += "/" + url.PathEscape(n)
	}
	return path
}

// encodeQuery returns a query string with the members of a struct that are set.
func encodeQuery(q any) (string, error) {
	object, err := jsonscan.Marshal(q)
	if err != nil {
		return "", err
	}

	query := url.Values{}
	for m := range jsonscan.Members(object) {
		switch m.Value[0] {
		case '"':
			query.Set(m.Name, jsonscan.Unquote(m.Value))
		case '[':
			for _, text := range jsonscan.Elements(m.Value) {
				query.Add(m.Name, jsonscan.Unquote(text))
			}
		default:
			query.Set(m.Name, string(m.Value))
		}
	}

	return query.Encode(), nil
}

// ask makes a request and returns its answer.
func ask[T any](ctx context.Context, c *Client, r request) (answer T, err error) {
	r.answer = &answer
	err = c.do(ctx, r)
	return answer, err
}

// errNotJSON returns the error for a filter or template with raw members that are not
// JSON.
func errNotJSON(err error) error {
	return wire.Errorf(wire.CodeBadJSON, "The body is not JSON: %w.", err)
}

// do makes the request and decodes the answer, or the server's error.
func (c *Client) do(ctx context.Context, r request) error {
	answer, err := c.open(ctx, r)
	if err != nil {
		return err
	}
	defer answer.Close()

	most := cmp.Or(r.answerBytesMax, answerBytesMax)
	// One byte more than allowed is read, so that an answer that is too large is noticed.
	body, err := readAnswer(ctx, io.LimitReader(answer, int64(most)+1), answer.ContentLength)
	if e := (*wire.Error)(nil); errors.As(err, &e) {
		// This process has no memory for it.
		return err
	}
	if err != nil {
		return c.unreachable(answer.ctx, err)
	}

	return c.read(answer.Response, body, most, r.answer)
}

// openAnswer is an answer that is read while it arrives.
type openAnswer struct {
	heard
	*http.Response
	ctx context.Context // its cause is why the answer was given up
	end func()
}

// Close ends the request.
func (a *openAnswer) Close() error {
	defer a.end()
	return a.Body.Close()
}

// open makes the request and returns the server's answer as it arrives. The caller must close it.
func (c *Client) open(ctx context.Context, r request) (*openAnswer, error) {
	if !canTravel(r.key) {
		return nil, errNoKey
	}
	if r.json != nil {
		var err error
		r.body, err = jsonscan.Marshal(r.json)
		if err != nil {
			return nil, errNotJSON(err)
		}
	}
	if r.query != nil {
		query, err := encodeQuery(r.query)
		if err != nil {
			return nil, errNotJSON(err)
		}
		r.path = strings.TrimSuffix(r.path+"?"+query, "?")
	}

	ctx, cancel := context.WithCancelCause(ctx)
	// Each byte that is sent or received starts this timer again.
	silence := time.AfterFunc(silenceMax, func() { cancel(errSilent) })
	answer := &openAnswer{ctx: ctx, end: func() {
		silence.Stop()
		cancel(nil)
	}}
	req, err := c.newRequest(ctx, r, silence)
	if err != nil {
		answer.end()
		return nil, wire.Errorf(wire.CodeInternal, "The request could not be made: %w", err)
	}

	// The clock is read as close to the request as possible, because the time between
	// bounds the skew.
	sent := c.now()
	answer.Response, err = c.http.Do(req)
	if err != nil {
		defer answer.end()
		return nil, c.unreachable(ctx, err)
	}
	c.skew.learn(sent, c.now(), answer.Header.Get(wire.TimeHeader))
	answer.heard = heard{answer.Body, silence}

	return answer, nil
}

const (
	answerCopies = 5         // of an answer in memory: as received, decoded, and encoded again
	answerPart   = 256 << 10 // of an answer of unknown length: bytes to read before reserving more
)

// readAnswer reads an answer to its end. It reserves the memory for all copies of it
// before it reads.
func readAnswer(ctx context.Context, r io.Reader, length int64) ([]byte, error) {
	var body bytes.Buffer
	if length > 0 && length <= answerBytesMax {
		if err := admission.AdmitRoom(ctx, answerCopies*int(length)); err != nil {
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
			err = admission.AdmitRoom(ctx, answerCopies*body.Len())
		}
		if err != nil {
			return nil, err
		}
	}
}

var errNoKey = wire.Errorf(wire.CodeUnauthorized,
	"This is not a key: it is too long, or contains a line break or another control character. "+
		"Check that it was copied completely, and nothing else with it.")

// canTravel reports whether a header can carry the key. Other keys are rejected here, as
// every server would reject them: net/http's error would look like an unreachable server.
func canTravel(key wire.Secret) bool {
	isControl := func(r rune) bool { return r < ' ' || r == 0x7f }
	return len(key) <= keyBytesMax && !strings.ContainsFunc(string(key), isControl)
}

// newRequest makes a request as net/http has it. silence is reset by each byte of its body.
func (c *Client) newRequest(ctx context.Context, r request, silence *time.Timer) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path, nil)
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
		open = func() io.Reader { return bytes.NewReader(r.body) }
		length = int64(len(r.body))
	}

	if open != nil {
		req.Header.Set("Content-Type", "application/json")
		req.ContentLength = length

		// With GetBody, net/http repeats a request whose idle connection turned out to be
		// closed before anything was sent.
		req.GetBody = func() (io.ReadCloser, error) {
			return io.NopCloser(&heard{open(), silence}), nil
		}
		req.Body, _ = req.GetBody()
	}

	return req, nil
}

// heard resets the timer whenever bytes pass.
type heard struct {
	io.Reader
	silence *time.Timer
}

// Read reads, and resets the timer.
func (h *heard) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if n > 0 {
		h.silence.Reset(silenceMax)
	}
	return n, err
}

// Beat reports a sidecar to the server, in the name of one of its accounts.
func (c *Client) Beat(ctx context.Context, id wire.Identity, h wire.Heartbeat) error {
	r := post(id, "/sync/heartbeat", h)
	r.answerBytesMax = syncAnswerBytesMax
	return c.do(ctx, r)
}

// Fleet lists the account's sidecars.
func (c *Client) Fleet(ctx context.Context, id wire.Identity) (wire.Fleet, error) {
	return ask[wire.Fleet](ctx, c, get(id, "/sync/fleet", nil))
}
