// Package issuer is a real OpenID Connect issuer for tests: zitadel's provider, with its example
// storage in memory. Its people have groups, its keys can be rotated, and it can be away.
package issuer

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/uuid"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"promptspool/api/auth/oidc/oidctest"
)

// Issuer is a running issuer. It is safe for concurrent use.
type Issuer struct {
	provider http.Handler
	callback func(context.Context, string) string
	storage  *peopleAndKeys

	mu       sync.Mutex
	state    oidctest.State
	signedIn map[string]string // subject by session
	key      *signingKey
}

// Run serves an issuer until told ends. It reads oidctest.States, and answers each.
func Run(told io.Reader, answers io.Writer) error {
	i := &Issuer{signedIn: map[string]string{}}
	server := httptest.NewServer(i)
	defer server.Close()
	if err := i.rotate(); err != nil {
		return err
	}

	clients := map[string]*storage.Client{}
	for _, id := range []string{oidctest.ClientID, oidctest.OtherID} {
		clients[id] = storage.WebClient(id, oidctest.ClientSecret)
	}
	i.storage = &peopleAndKeys{storage.NewStorageWithClients(people{i}, clients), i}
	provider, err := op.NewProvider(&op.Config{CodeMethodS256: true, AuthMethodPost: true},
		i.storage, op.StaticIssuer(server.URL), op.WithAllowInsecure(), op.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}

	interceptor := op.NewIssuerInterceptor(provider.IssuerFromRequest)
	routes := http.NewServeMux()
	routes.Handle("/login", interceptor.HandlerFunc(i.login))
	routes.Handle("/", provider)
	i.provider, i.callback = routes, op.AuthCallbackURL(provider)

	for states := json.NewDecoder(told); ; {
		var state oidctest.State
		err := states.Decode(&state)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}

		answer := oidctest.Answer{URL: server.URL}
		answer.Passes, err = i.take(state)
		if err != nil {
			return err
		}
		if err := json.NewEncoder(answers).Encode(answer); err != nil {
			return err
		}
	}
}

// take behaves by a state from now on. It returns how often each person is signed in.
func (i *Issuer) take(state oidctest.State) (passes map[string]int, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if state.Rotations != i.state.Rotations {
		err = i.rotate()
	}
	i.state = state

	passes = make(map[string]int)
	for _, subject := range i.signedIn {
		passes[subject]++
	}
	return passes, err
}

// rotate replaces the key that tokens are signed with. The one before is not published any more.
func (i *Issuer) rotate() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	i.key = &signingKey{uuid.NewString(), key}

	return err
}

// ServeHTTP answers as the issuer.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	s := i.state.Settings
	i.mu.Unlock()

	switch {
	case s.Away:
		panic(http.ErrAbortHandler) // closes the connection
	case len(s.IDToken) == 0 || r.URL.Path != "/oauth/token":
		i.provider.ServeHTTP(w, r)
		return
	}

	recorded := httptest.NewRecorder()
	i.provider.ServeHTTP(recorded, r)
	var answer map[string]any
	_ = json.Unmarshal(recorded.Body.Bytes(), &answer)
	answer["id_token"] = s.IDToken
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(recorded.Code)
	_ = json.NewEncoder(w).Encode(answer)
}

// login is the page on which people sign in at the issuer. Those who have a session go on at once.
func (i *Issuer) login(w http.ResponseWriter, r *http.Request) {
	id, email := r.FormValue("id"), r.FormValue("email")
	if cookie, err := r.Cookie("issuer-session"); err == nil && email == "" {
		i.mu.Lock()
		email = i.state.Users[i.signedIn[cookie.Value]].Email
		i.mu.Unlock()
	}
	if email == "" {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<!doctype html><title>Issuer</title><h1>Issuer</h1><form method="post">
			<input type="hidden" name="id" value="%s"><input name="email" aria-label="Email">
			<button>Sign in at the issuer</button></form>`, html.EscapeString(id))
		return
	}
	if err := i.storage.CheckUsernamePassword(email, oidctest.Password, id); err != nil {
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

// people are the issuer's people as its storage wants them.
type people struct{ issuer *Issuer }

func (p people) byEmail(email string) oidctest.User {
	for _, u := range p.issuer.state.Users {
		if u.Email == email {
			return u
		}
	}
	return oidctest.User{}
}

func (p people) user(u oidctest.User) *storage.User {
	if u.Subject == "" {
		return nil
	}
	return &storage.User{
		ID: u.Subject, Username: u.Email, Email: u.Email, EmailVerified: !u.Unverified, Password: oidctest.Password,
	}
}

// GetUserByID returns a person by their subject.
func (p people) GetUserByID(id string) *storage.User {
	p.issuer.mu.Lock()
	defer p.issuer.mu.Unlock()

	return p.user(p.issuer.state.Users[id])
}

// GetUserByUsername returns a person by their email.
func (p people) GetUserByUsername(name string) *storage.User {
	p.issuer.mu.Lock()
	defer p.issuer.mu.Unlock()

	return p.user(p.byEmail(name))
}

// ExampleClientID is needed by the storage.
func (p people) ExampleClientID() string { return oidctest.ClientID }

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
	return client{c, p.issuer.state.Bases, !p.issuer.state.Settings.Thin}, nil
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
	if groups := p.issuer.state.Users[subject].Groups; groups != nil {
		info.AppendClaims("groups", groups)
	}
	for name, value := range p.issuer.state.Settings.Claims {
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

// client is a program that the issuer knows, at the addresses of the servers under test.
type client struct {
	op.Client
	bases []string
	full  bool
}

// at returns the addresses of a page of the servers.
func (c client) at(path string) (all []string) {
	for _, base := range c.bases {
		all = append(all, base+path)
	}
	return all
}

func (c client) RedirectURIs() []string               { return c.at("/sign-in/oidc/callback") }
func (c client) PostLogoutRedirectURIs() []string     { return c.at("/sign-in") }
func (c client) IDTokenUserinfoClaimsAssertion() bool { return c.full }
func (c client) LoginURL(id string) string            { return "/login?id=" + id }
