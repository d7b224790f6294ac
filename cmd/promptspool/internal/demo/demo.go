// Package demo fills a server with what a support bot did in 30 days, so that every page has
// something to show.
package demo

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/api/wire/packed"
)

// calls is a JSON array of them: 58 versions of templates, 3,000 calls with their scores, 140 more in
// traces. They were drawn once, and scenes of the end-to-end tests count what is in them.
//
//go:embed calls.zst
var calls []byte

// Base is the moment before which everything in the file happened.
var Base = time.Date(2026, 1, 30, 17, 0, 0, 0, time.UTC)

// Call is a call of the API: a body that is posted to a path.
type Call struct{ Path, Body string }

// Fill makes all calls at a server, as if Base were now.
func Fill(ctx context.Context, server string, key wire.Secret, now time.Time) error {
	all, err := Calls(now)
	for _, c := range all {
		if err == nil {
			err = c.Send(ctx, server, key)
		}
	}
	return err
}

// Calls returns all calls, as if Base were now.
func Calls(now time.Time) (all []Call, err error) {
	if err := json.Unmarshal([]byte(packed.Text(calls)()), &all); err != nil {
		return nil, err
	}
	for i, c := range all {
		all[i] = c.shifted(now.Sub(Base))
	}
	return all, nil
}

// moments are the forms in which bodies have times: UUIDv7, RFC 3339, seconds and nanoseconds.
var moments = regexp.MustCompile(`"[0-9a-f]{8}-[0-9a-f]{4}-7|_at":"[^"]+|_time":[0-9.]+|Nano":"[0-9]+`)

// shifted returns the call with all times later.
func (c Call) shifted(by time.Duration) Call {
	c.Body = moments.ReplaceAllStringFunc(c.Body, func(text string) string {
		name, value, _ := strings.Cut(text, `":`)
		switch name {
		case "_at":
			at, _ := time.Parse(time.RFC3339Nano, value[1:])
			return name + `":"` + at.Add(by).Format(time.RFC3339Nano)
		case "_time":
			at, _ := strconv.ParseFloat(value, 64)
			return fmt.Sprintf(`%s":%.3f`, name, at+by.Seconds())
		case "Nano":
			at, _ := strconv.ParseInt(value[1:], 10, 64)
			return fmt.Sprintf(`%s":"%d`, name, at+int64(by))
		default:
			at, _ := strconv.ParseInt(text[1:9]+text[10:14], 16, 64)
			id := fmt.Sprintf("%012x", at+by.Milliseconds())
			return `"` + id[:8] + "-" + id[8:] + "-7"
		}
	})
	return c
}

// Send makes the call. An answer that refuses any part of it is an error.
func (c Call) Send(ctx context.Context, server string, key wire.Secret) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server+c.Path, strings.NewReader(c.Body))
	if err != nil {
		return err
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "X-Api-Key": {string(key)}}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()

	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 || strings.Contains(string(answer), `"invalid"`) {
		return fmt.Errorf("%s: %s %.500s (%v)", c.Path, res.Status, answer, err)
	}
	return nil
}
