// Package oidctest runs a real OpenID Connect issuer for tests: the one of cmd/promptspool/e2e/issuer, as
// a process. Its people have groups, its keys can be rotated, and it can be away.
package oidctest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"promptspool/metrics/partstest"
)

// ClientID and ClientSecret are those of the server under test. OtherID is another program, with the
// same secret.
const (
	ClientID     = "promptspool"
	ClientSecret = "the-issuer's-secret-of-promptspool"
	OtherID      = "wiki"
)

// Password is that of all people at the issuer.
const Password = "at-the-issuer"

// User is a person at the issuer.
type User struct {
	Subject    string // if absent, the email
	Email      string
	Unverified bool // has not proved that the email is theirs
	Groups     []string
}

// Settings are how the issuer behaves. The zero value is its usual way.
type Settings struct {
	Away    bool            // it cannot be reached
	Thin    bool            // ID tokens contain only the subject, as those of many issuers do
	Claims  map[string]any  // more of them for everyone
	IDToken json.RawMessage `json:",omitempty"` // in place of each one, unless it is empty
}

// Addresses are where a process of the issuer listens.
type Addresses struct{ Issuer, Control string }

// Issuer is a running issuer. Its methods fail the test if the process does not answer.
type Issuer struct {
	URL     string
	control string
	t       testing.TB
}

// Start runs an issuer until the test ends. It knows the servers under test at these addresses.
func Start(t testing.TB, bases ...string) *Issuer {
	t.Helper()
	tools, err := partstest.Tools()
	if err != nil {
		t.Fatal(err)
	}
	process := exec.Command(tools, "issuer")
	process.Stderr = os.Stderr
	stdin, err := process.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close() // which ends it
		_ = process.Wait()
	})

	var at Addresses
	if err := json.NewDecoder(stdout).Decode(&at); err != nil {
		t.Fatalf("the issuer does not start: %v", err)
	}
	i := &Issuer{URL: at.Issuer, control: at.Control, t: t}
	for _, base := range bases {
		i.Allow(base)
	}

	return i
}

// tell calls the issuer's control, and decodes its answer into result, unless that is nil.
func (i *Issuer) tell(what string, argument, result any) {
	i.t.Helper()
	body, err := json.Marshal(argument)
	if err != nil {
		i.t.Fatal(err)
	}
	answer, err := http.Post(i.control+"/"+what, "application/json", bytes.NewReader(body))
	if err != nil {
		i.t.Fatal(err)
	}
	defer answer.Body.Close()

	text, err := io.ReadAll(answer.Body)
	if err == nil && result != nil {
		err = json.Unmarshal(text, result)
	}
	if err != nil || answer.StatusCode != http.StatusOK {
		i.t.Fatalf("the issuer answers %s with %d: %s (%v)", what, answer.StatusCode, text, err)
	}
}

// Allow lets a server at this address send browsers to the issuer.
func (i *Issuer) Allow(base string) { i.tell("allow", base, nil) }

// Put adds a person, or replaces the one with this subject.
func (i *Issuer) Put(u User) {
	if u.Subject == "" {
		u.Subject = u.Email
	}
	i.tell("put", u, nil)
}

// Set changes how the issuer behaves.
func (i *Issuer) Set(s Settings) { i.tell("set", s, nil) }

// Rotate replaces the key that tokens are signed with. The one before is not published any more.
func (i *Issuer) Rotate() { i.tell("rotate", struct{}{}, nil) }

// Passes returns how often a person has passed through the issuer since they last signed out there.
func (i *Issuer) Passes(subject string) (passes int) {
	i.tell("passes", subject, &passes)
	return passes
}

// Browser signs a person in, and returns the address to which the issuer sends their browser back.
// address is where a server sent it.
func (i *Issuer) Browser(t testing.TB, address, email string) *url.URL {
	t.Helper()
	jar, _ := cookiejar.New(nil)
	browser := http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}

	for range 5 {
		if strings.Contains(address, "/login?") {
			address += "&email=" + url.QueryEscape(email)
		}
		answer, err := browser.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()

		next, err := answer.Location()
		if err != nil {
			t.Fatalf("the issuer answers %s with %d: %s", address, answer.StatusCode, body)
		}
		if !strings.HasPrefix(next.String(), i.URL) {
			return next
		}
		address = next.String()
	}
	t.Fatalf("the issuer sends the browser round in circles: %s", address)

	return nil
}
