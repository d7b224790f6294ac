package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"code.dny.dev/ssrf"

	"promptspool/api/wire"
)

// excerptMax bounds what is read and shown of an answer that refuses.
const excerptMax = 200

// holdsFor is how long an Alertmanager holds what it is not told again. Prometheus takes four rounds as well.
const holdsFor = 4 * time.Minute

// send sends what an attempt is about, once.
func (s *Service) send(ctx context.Context, a *wire.Attempt) *failure {
	to, err := s.open(&a.Target)
	if err != nil {
		return failed("%s", wire.AsError(err).Message)
	}
	about := slices.Clone(a.About)
	for i := range about {
		about[i].URL = s.c.PublicURL + about[i].URL
		// A path alone leads nowhere.
		if s.c.PublicURL == "" {
			about[i].URL = ""
		}
	}

	now := time.Now()
	header := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"promptspool"}}
	var body any
	switch a.Target.Kind {
	case wire.TargetSlack:
		body = slackMessage(&about[0])
	case wire.TargetAlertmanager:
		body = alertsOf(about, now)
		to.URL = strings.TrimRight(to.URL, "/") + "/api/v2/alerts"
	default:
		body = webhookBody(&about[0])
	}
	// Texts, times and JSON that was read always encode.
	text, _ := json.Marshal(body)
	if a.Target.Kind == wire.TargetWebhook {
		sign(header, to.Secret, about[0].ID, now, text)
	}

	return s.post(ctx, to.URL, header, text)
}

// sign adds the headers of Standard Webhooks: an id that is the same with each attempt, the time of this
// one, and their HMAC with the body.
func sign(header http.Header, secret, id string, now time.Time, body []byte) {
	// It was made here.
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	at := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(id + "." + at + "." + string(body)))
	header.Set("webhook-id", id)
	header.Set("webhook-timestamp", at)
	header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

// post sends a body. The status of the answer decides: whatever follows one of success is not waited for.
func (s *Service) post(ctx context.Context, to string, header http.Header, body []byte) *failure {
	request, err := http.NewRequestWithContext(ctx, "POST", to, bytes.NewReader(body))
	if err != nil {
		return failed("its URL is not valid")
	}
	request.Header = header
	answer, err := s.client.Do(request)
	if err != nil {
		// Without the URL, which may be secret.
		if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		if errors.Is(err, ssrf.ErrProhibitedIP) {
			err = fmt.Errorf("%w; an operator can allow its network with --webhook-allow", err)
		}
		return failed("%w", err)
	}
	defer answer.Body.Close()

	code := answer.StatusCode
	if code/100 == 2 {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, excerptMax))
	f := failed("it answered %d: %s", code, strings.ToValidUTF8(string(text), "?"))
	f.refused = code/100 == 3 || code/100 == 4 && code != 408 && code != 425 && code != 429
	after := answer.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(after, 10, 16); err == nil {
		f.retryAfter = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(after); err == nil {
		f.retryAfter = time.Until(at)
	}
	return f
}

// webhookBody is the payload that Standard Webhooks recommends.
func webhookBody(n *wire.Notice) any {
	return map[string]any{
		"type":      n.Type,
		"timestamp": n.Time,
		"data": map[string]any{
			"project": n.Project,
			"title":   n.Title,
			"text":    n.Text,
			"url":     n.URL,
			"labels":  n.Labels,
			"details": n.Data,
		},
	}
}

var slackEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// slackMessage is a message of an incoming webhook.
func slackMessage(n *wire.Notice) any {
	text := "*" + slackEscaper.Replace(n.Title) + "*"
	if n.Project != "" {
		text += " (" + slackEscaper.Replace(n.Project) + ")"
	}
	if n.Text != "" {
		text += "\n" + slackEscaper.Replace(n.Text)
	}
	if n.URL != "" {
		text += "\n<" + slackEscaper.Replace(n.URL) + "|Open>"
	}
	return map[string]string{"text": text}
}

// alertsOf are notices as alerts of Alertmanager. An alert is known by its labels, so those of a condition's end
// are those of its beginning.
func alertsOf(about []wire.Notice, now time.Time) any {
	type alert struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
		StartsAt    time.Time         `json:"startsAt"`
		EndsAt      time.Time         `json:"endsAt"`
		URL         string            `json:"generatorURL,omitempty"`
	}

	alerts := make([]alert, len(about))
	for i, n := range about {
		begins, holds := n.Condition()
		labels := map[string]string{"alertname": cmp.Or(begins, n.Type), "project": n.Project}
		maps.Copy(labels, n.Labels)
		alerts[i] = alert{
			Labels:      labels,
			Annotations: map[string]string{"summary": n.Title, "description": n.Text},
			StartsAt:    n.Time,
			EndsAt:      now.Add(holdsFor).UTC(),
			URL:         n.URL,
		}
		if begins != "" && !holds {
			alerts[i].EndsAt = n.Time
		}
	}
	return alerts
}
