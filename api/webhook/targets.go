package webhook

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"time"

	"promptspool/api/wire"
)

// sealed is what of a target is kept encrypted. A URL may be a secret, as Slack's are.
type sealed struct {
	URL    string `json:"url"`
	Secret string `json:"secret,omitempty"`
}

// secretPrefix is before the secrets of Standard Webhooks.
const secretPrefix = "whsec_"

// newSealer returns what encrypts with a key.
func newSealer(key wire.Secret) cipher.AEAD {
	sum := sha256.Sum256([]byte(key))
	// A key of 32 bytes fits.
	block, _ := aes.NewCipher(sum[:])
	sealer, _ := cipher.NewGCMWithRandomNonce(block)
	return sealer
}

// seal encrypts. The result belongs to the target: it does not open for another one.
func (s *Service) seal(t *wire.SealedTarget, v sealed) {
	text, _ := json.Marshal(v)
	t.Sealed = s.sealer.Seal(nil, nil, text, []byte(t.ID))
}

func (s *Service) open(t *wire.SealedTarget) (v sealed, err error) {
	text, err := s.sealer.Open(nil, nil, t.Sealed, []byte(t.ID))
	if err != nil {
		return v, wire.Errorf(wire.CodeConflict, "Its URL was sealed with another key than this server's --seal-key. "+
			"Give the server that key, or set the URL again.")
	}
	return v, json.Unmarshal(text, &v)
}

// Targets lists the project's targets, by name; see wire.Targets.
func (s *Service) Targets(ctx context.Context, id wire.Identity) ([]wire.Target, error) {
	stored, err := s.SealedTargets(ctx, id)
	all := make([]wire.Target, len(stored))
	for i, t := range stored {
		if t.Tries > 0 && t.Holder == "" {
			t.RetryAt = &t.DueAt
		}
		all[i] = t.Target
	}
	return all, err
}

// PutTarget makes or changes a target; see wire.Targets.
func (s *Service) PutTarget(ctx context.Context, id wire.Identity, n wire.TargetSettings) (made string, err error) {
	if s.c.Key == "" {
		return "", wire.Errorf(wire.CodeConflict, "This server has no --seal-key, so it cannot keep a secret. "+
			"With PostgreSQL, start all servers with the same one.")
	}
	err = s.ChangeTarget(ctx, id, n.Name, func(t *wire.SealedTarget) error {
		was := sealed{}
		if t.Kind == n.Kind {
			was, err = s.open(t)
		}
		now := sealed{URL: cmp.Or(n.URL, was.URL), Secret: was.Secret}
		if now.URL == "" {
			return cmp.Or(err, error(wire.Invalid(wire.FieldError{Field: "url", Reason: "is missing"})))
		}
		made = ""
		if n.Kind == wire.TargetWebhook && now.Secret == "" {
			// Standard Webhooks wants 24 to 64 bytes. These are 26, with 130 bits.
			made = secretPrefix + base64.StdEncoding.EncodeToString([]byte(rand.Text()))
			now.Secret = made
		}

		// Only an Alertmanager is told again.
		if t.Kind != n.Kind {
			t.Held = nil
		}
		t.Kind, t.URL = n.Kind, shownURL(now.URL)
		t.Types = append([]string{}, n.Types...)
		s.seal(t, now)
		return nil
	})
	return made, err
}

// shownURL returns the beginning of a URL: a path may be a secret, as Slack's are.
func shownURL(text string) string {
	// It was checked.
	u, _ := url.Parse(text)
	return u.Scheme + "://" + u.Host
}

// TestTarget sends a test; see wire.Targets.
func (s *Service) TestTarget(ctx context.Context, id wire.Identity, name string) error {
	all, err := s.SealedTargets(ctx, id)
	at := slices.IndexFunc(all, func(t wire.SealedTarget) bool { return t.Name == name })
	if err != nil || at < 0 {
		return cmp.Or(err, error(wire.Errorf(wire.CodeNotFound, "There is no target of this name.")))
	}

	test := wire.Notice{
		ID:    wire.NewID(),
		Type:  "test",
		Time:  time.Now().UTC(),
		Title: "A test of the target " + name,
		URL:   "/targets",
	}
	if failed := s.send(ctx, &wire.Attempt{Target: all[at], About: []wire.Notice{test}}); failed != nil {
		return wire.Errorf(wire.CodeConflict, "The target did not take the test: %v", failed)
	}
	return nil
}
