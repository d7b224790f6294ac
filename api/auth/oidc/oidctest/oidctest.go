// Package oidctest runs a real OpenID Connect issuer for tests: zitadel's provider, with its example
// storage in memory. Its people have groups, its keys can be rotated, and it can be away.
package oidctest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/uuid"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
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

// Issuer is a running issuer. It is safe for concurrent use.
type Issuer struct {
	URL    string
	Claims map[string]any // more of them for everyone; set while no one signs in

	server   *httptest.Server
	provider http.Handler
	callback func(context.Context, string) string
	storage  *peopleAndKeys

	mu        sync.Mutex
	users     map[string]User // by subject
	signedIn  map[string]string
	callbacks []string
	signedOut []string // where browsers may go after signing out
	key       *signingKey
	thin      bool
	away      bool
	tamper    func(answer map[string]any)
}

// Start runs an issuer until the test ends. It knows the servers under test at these addresses.
func Start(t testing.TB, bases ...string) *Issuer {
	t.Helper()
	i := &Issuer{users: map[string]User{}, signedIn: map[string]string{}}
	i.server = httptest.NewServer(i)
	t.Cleanup(i.server.Close)
	i.URL = i.server.URL
	i.Rotate()
	for _, base := range bases {
		i.Allow(base)
	}

	clients := map[string]*storage.Client{}
	for _, id := range []string{ClientID, OtherID} {
		clients[id] = storage.WebClient(id, ClientSecret)
	}
	i.storage = &peopleAndKeys{storage.NewStorageWithClients(people{i}, clients), i}
	provider, err := op.NewProvider(&op.Config{CodeMethodS256: true, AuthMethodPost: true},
		i.storage, op.StaticIssuer(i.URL), op.WithAllowInsecure())
	if err != nil {
		t.Fatal(err)
	}

	interceptor := op.NewIssuerInterceptor(provider.IssuerFromRequest)
	routes := http.NewServeMux()
	routes.Handle("/login", interceptor.HandlerFunc(i.login))
	routes.Handle("/", provider)
	i.provider, i.callback = routes, op.AuthCallbackURL(provider)

	return i
}

// Allow lets a server at this address send browsers to the issuer.
func (i *Issuer) Allow(base string) {
	i.mu.Lock()
	defer i.mu.Unlock()

	i.callbacks = append(i.callbacks, base+"/sign-in/oidc/callback")
	i.signedOut = append(i.signedOut, base+"/sign-in")
}

// Put adds a person, or replaces the one with this subject.
func (i *Issuer) Put(u User) {
	i.mu.Lock()
	defer i.mu.Unlock()

	if u.Subject == "" {
		u.Subject = u.Email
	}
	i.users[u.Subject] = u
}

// SetAway makes the issuer unreachable, or lets it come back.
func (i *Issuer) SetAway(away bool) {
	i.mu.Lock()
	defer i.mu.Unlock()

	i.away = away
}

// SetThin puts only the subject into ID tokens, as many issuers do.
func (i *Issuer) SetThin(thin bool) {
	i.mu.Lock()
	defer i.mu.Unlock()

	i.thin = thin
}

// Tamper changes the answers of the token endpoint from now on; nil leaves them alone.
func (i *Issuer) Tamper(change func(answer map[string]any)) {
	i.mu.Lock()
	defer i.mu.Unlock()

	i.tamper = change
}

// Rotate replaces the key that tokens are signed with. The one before is not published any more.
func (i *Issuer) Rotate() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}

	i.mu.Lock()
	defer i.mu.Unlock()
	i.key = &signingKey{uuid.NewString(), key}
}

// ServeHTTP answers as the issuer.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	away, tamper := i.away, i.tamper
	i.mu.Unlock()

	switch {
	case away:
		panic(http.ErrAbortHandler) // closes the connection
	case tamper == nil || r.URL.Path != "/oauth/token":
		i.provider.ServeHTTP(w, r)
		return
	}

	recorded := httptest.NewRecorder()
	i.provider.ServeHTTP(recorded, r)
	var answer map[string]any
	_ = json.Unmarshal(recorded.Body.Bytes(), &answer)
	tamper(answer)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(recorded.Code)
	_ = json.NewEncoder(w).Encode(answer)
}

// login is the page on which people sign in at the issuer. Those who have a session go on at once.
func (i *Issuer) login(w http.ResponseWriter, r *http.Request) {
	id, email := r.FormValue("id"), r.FormValue("email")
	if cookie, err := r.Cookie("issuer-session"); err == nil && email == "" {
		i.mu.Lock()
		email = i.users[i.signedIn[cookie.Value]].Email
		i.mu.Unlock()
	}
	if email == "" {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<!doctype html><title>Issuer</title><h1>Issuer</h1><form method="post">
			<input type="hidden" name="id" value="%s"><input name="email" aria-label="Email">
			<button>Sign in at the issuer</button></form>`, html.EscapeString(id))
		return
	}
	if err := i.storage.CheckUsernamePassword(email, Password, id); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}

	session := uuid.NewString()
	i.mu.Lock()
	i.signedIn[session] = people{i}.byEmail(email).Subject
	i.mu.Unlock()
	http.SetCookie(w, &http.Cookie{Name: "issuer-session", Value: session, Path: "/", HttpOnly: true})
	http.Redirect(w, r, i.callback(r.Context(), id), http.StatusFound)
}

// Passes returns how often a person has passed through the issuer since they last signed out there.
func (i *Issuer) Passes(subject string) (passes int) {
	i.mu.Lock()
	defer i.mu.Unlock()

	for _, s := range i.signedIn {
		if s == subject {
			passes++
		}
	}
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

// people are the issuer's people as its storage wants them.
type people struct{ issuer *Issuer }

func (p people) byEmail(email string) User {
	for _, u := range p.issuer.users {
		if u.Email == email {
			return u
		}
	}
	return User{}
}

func (p people) user(u User) *storage.User {
	if u.Subject == "" {
		return nil
	}
	return &storage.User{
		ID: u.Subject, Username: u.Email, Email: u.Email, EmailVerified: !u.Unverified, Password: Password,
	}
}

// GetUserByID returns a person by their subject.
func (p people) GetUserByID(id string) *storage.User {
	p.issuer.mu.Lock()
	defer p.issuer.mu.Unlock()

	return p.user(p.issuer.users[id])
}

// GetUserByUsername returns a person by their email.
func (p people) GetUserByUsername(name string) *storage.User {
	p.issuer.mu.Lock()
	defer p.issuer.mu.Unlock()

	return p.user(p.byEmail(name))
}

// ExampleClientID is needed by the storage.
func (p people) ExampleClientID() string { return ClientID }

// peopleAndKeys is the example's storage with groups, keys that change, and our clients.
type peopleAndKeys struct {
	*storage.Storage
	issuer *Issuer
}

// GetClientByClientID returns a client with the addresses of the servers under test.
func (p *peopleAndKeys) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	c, err := p.Storage.GetClientByClientID(ctx, id)
	if err != nil {
		return nil, err
	}

	p.issuer.mu.Lock()
	defer p.issuer.mu.Unlock()
	callbacks, signedOut := slices.Clone(p.issuer.callbacks), slices.Clone(p.issuer.signedOut)
	return client{c, callbacks, signedOut, !p.issuer.thin}, nil
}

// SetUserinfoFromRequest says what an ID token contains.
func (p *peopleAndKeys) SetUserinfoFromRequest(
	ctx context.Context, info *oidc.UserInfo, token op.IDTokenRequest, scopes []string,
) error {
	p.addGroups(info, token.GetSubject(), scopes)
	return p.Storage.SetUserinfoFromRequest(ctx, info, token, scopes)
}

// SetUserinfoFromToken answers for the userinfo endpoint.
func (p *peopleAndKeys) SetUserinfoFromToken(
	ctx context.Context, info *oidc.UserInfo, tokenID, subject, origin string,
) error {
	p.addGroups(info, subject, []string{oidc.ScopeEmail})
	return p.Storage.SetUserinfoFromToken(ctx, info, tokenID, subject, origin)
}

// addGroups adds a person's groups where their email goes, which a thin token does not have.
func (p *peopleAndKeys) addGroups(info *oidc.UserInfo, subject string, scopes []string) {
	p.issuer.mu.Lock()
	defer p.issuer.mu.Unlock()

	if !slices.Contains(scopes, oidc.ScopeEmail) {
		return
	}
	if groups := p.issuer.users[subject].Groups; groups != nil {
		info.AppendClaims("groups", groups)
	}
	for name, value := range p.issuer.Claims {
		info.AppendClaims(name, value)
	}
}

// TerminateSession signs a person out at the issuer.
func (p *peopleAndKeys) TerminateSession(ctx context.Context, subject, clientID string) error {
	p.issuer.mu.Lock()
	for session, of := range p.issuer.signedIn {
		if of == subject {
			delete(p.issuer.signedIn, session)
		}
	}
	p.issuer.mu.Unlock()

	return p.Storage.TerminateSession(ctx, subject, clientID)
}

// SigningKey returns the current key.
func (p *peopleAndKeys) SigningKey(context.Context) (op.SigningKey, error) {
	p.issuer.mu.Lock()
	defer p.issuer.mu.Unlock()

	return p.issuer.key, nil
}

// SignatureAlgorithms returns that of all keys.
func (p *peopleAndKeys) SignatureAlgorithms(context.Context) ([]jose.SignatureAlgorithm, error) {
	return []jose.SignatureAlgorithm{jose.ES256}, nil
}

// KeySet returns the public part of the current key.
func (p *peopleAndKeys) KeySet(context.Context) ([]op.Key, error) {
	p.issuer.mu.Lock()
	defer p.issuer.mu.Unlock()

	return []op.Key{publicKey{p.issuer.key}}, nil
}

type signingKey struct {
	id  string
	key *ecdsa.PrivateKey
}

func (k *signingKey) ID() string                                  { return k.id }
func (k *signingKey) Key() any                                    { return k.key }
func (k *signingKey) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.ES256 }

type publicKey struct{ *signingKey }

func (k publicKey) Algorithm() jose.SignatureAlgorithm { return jose.ES256 }
func (k publicKey) Use() string                        { return "sig" }
func (k publicKey) Key() any                           { return &k.key.PublicKey }

// client is a program that the issuer knows.
type client struct {
	op.Client
	callbacks, signedOut []string
	full                 bool
}

func (c client) RedirectURIs() []string               { return c.callbacks }
func (c client) PostLogoutRedirectURIs() []string     { return c.signedOut }
func (c client) IDTokenUserinfoClaimsAssertion() bool { return c.full }
func (c client) LoginURL(id string) string            { return "/login?id=" + id }
