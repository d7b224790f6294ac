// Package oidctest runs a real OpenID Connect issuer for tests: the one of cmd/promptspool/e2e/issuer, as
// a process. Its people have groups, its keys can be rotated, and it can be away.
package oidctest

import (
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

// State is what an issuer is told, each time all of it.
type State struct {
	Users     map[string]User // by subject
	Bases     []string        // of the servers that may send browsers to it
	Rotations int             // how often its key was replaced
	Settings  Settings
}

// Answer is what an issuer says to each State.
type Answer struct {
	URL    string
	Passes map[string]int // how often each person has passed through it since they last signed out there
}

// Issuer is a running issuer. Its methods fail the test if the process does not answer.
type Issuer struct {
	URL     string
	t       testing.TB
	state   State
	told    *json.Encoder
	answers *json.Decoder
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

	i := &Issuer{
		t:       t,
		state:   State{Users: map[string]User{}, Bases: bases},
		told:    json.NewEncoder(stdin),
		answers: json.NewDecoder(stdout),
	}
	i.URL = i.tell().URL

	return i
}

// tell sends the state to the process.
func (i *Issuer) tell() (a Answer) {
	i.t.Helper()
	err := i.told.Encode(i.state)
	if err == nil {
		err = i.answers.Decode(&a)
	}
	if err != nil {
		i.t.Fatalf("the issuer does not answer: %v", err)
	}

	return a
}

// Allow lets a server at this address send browsers to the issuer.
func (i *Issuer) Allow(base string) {
	i.state.Bases = append(i.state.Bases, base)
	i.tell()
}

// Put adds a person, or replaces the one with this subject.
func (i *Issuer) Put(u User) {
	if u.Subject == "" {
		u.Subject = u.Email
	}
	i.state.Users[u.Subject] = u
	i.tell()
}

// Set changes how the issuer behaves.
func (i *Issuer) Set(s Settings) {
	i.state.Settings = s
	i.tell()
}

// Rotate replaces the key that tokens are signed with. The one before is not published any more.
func (i *Issuer) Rotate() {
	i.state.Rotations++
	i.tell()
}

// Passes returns how often a person has passed through the issuer since they last signed out there.
func (i *Issuer) Passes(subject string) int { return i.tell().Passes[subject] }

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
