// Package oidc lets people sign in at an OpenID Connect issuer, such as Keycloak or Entra ID.
//
// It is the authorization code flow with PKCE, state and nonce. The issuer is discovered when it is
// first needed, so that a server starts, and stays up, while the issuer is away. No refresh token is
// asked for, and no token is stored here.
package oidc

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"promptspool/api/wire"
)

const (
	// clockSkew is how late an ID token may arrive, because clocks differ.
	clockSkew = 2 * time.Minute

	// answerMax bounds how long a person waits for one answer of the issuer.
	answerMax = 10 * time.Second

	// askingMax bounds how many people wait for the issuer, each with a connection to it at most.
	askingMax = 64
)

// Config configures an Issuer.
type Config struct {
	Issuer       string                  // its URL, exactly as its tokens have it; must be valid
	ClientID     string                  // the name under which the issuer knows this server
	ClientSecret wire.Secret             // "" for a public client, which has only PKCE
	Scopes       []string                // asked for besides openid and email
	GroupsClaim  string                  // where the issuer puts a person's groups, such as "groups"
	Roles        map[string][]wire.Grant // by groups
	TrustEmail   bool                    // also if the issuer does not say that it was verified
	TLS          *tls.Config             // how the issuer's certificate is judged; nil means as usual
	Now          func() time.Time        // as time.Now
}

// Issuer is an OpenID Connect issuer. It is safe for concurrent use.
type Issuer struct{ current atomic.Pointer[configured] }

// configured is an issuer under one configuration.
type configured struct {
	Config
	address *url.URL
	client  *http.Client
	found   atomic.Pointer[discovered] // nil until it was discovered
	finding singleflight.Group         // of found
	asking  chan struct{}              // a slot for each person under way
}

// discovered is what the issuer's discovery document says.
type discovered struct {
	*oidc.Provider
	SignOut string `json:"end_session_endpoint"` // "" for none
}

// New returns the issuer of a configuration. It does not call it.
func New(c Config) *Issuer {
	i := new(Issuer)
	i.Set(c)
	return i
}

// Set puts another configuration in force. Sign-ins under way are finished with it.
func (i *Issuer) Set(c Config) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = c.TLS
	// A call that was given up may still be dialling.
	transport.MaxConnsPerHost = askingMax
	address, _ := url.Parse(c.Issuer)
	client := &http.Client{Transport: transport, Timeout: answerMax}
	i.current.Store(&configured{
		Config:  c,
		address: address,
		client:  client,
		asking:  make(chan struct{}, askingMax),
	})
}

// Address returns the issuer's address, by which people know it.
func (i *Issuer) Address() *url.URL { return i.current.Load().address }

// Begin returns the issuer's address for signing in, and what the browser keeps until it comes back.
// callback is our address to which it comes back. The error is wire.CodeUnavailable if the issuer is
// away.
func (i *Issuer) Begin(ctx context.Context, callback string) (string, wire.LoginAttempt, error) {
	p := i.current.Load()
	found, done, err := p.ask(ctx)
	if err != nil {
		return "", wire.LoginAttempt{}, err
	}
	defer done()

	// Each is 256 random bits.
	a := wire.LoginAttempt{
		State:    oauth2.GenerateVerifier(),
		Nonce:    oauth2.GenerateVerifier(),
		Verifier: oauth2.GenerateVerifier(),
	}
	address := p.oauth(found, callback).
		AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier))

	return address, a, nil
}

// Finish returns the person who signed in. q is the query with which the browser came back to callback,
// and kept what it kept. wire.CodeForbidden is an answer that is not for this browser's attempt or
// cannot be trusted, or the issuer's refusal. wire.CodeUnavailable means that the issuer is away.
func (i *Issuer) Finish(
	ctx context.Context, callback string, q url.Values, kept wire.LoginAttempt,
) (wire.Login, error) {
	// Checked before anything of the answer is used or shown: a link may have any text in it.
	if !same(kept.State, q.Get("state")) {
		return wire.Login{}, wire.Errorf(wire.CodeForbidden, "This sign-in has expired, has been finished, "+
			"or was begun in another browser. Sign in again.")
	}
	if q.Has("error") {
		return wire.Login{}, refused(q.Get("error"), q.Get("error_description"))
	}

	p := i.current.Load()
	found, done, err := p.ask(ctx)
	if err != nil {
		return wire.Login{}, err
	}
	defer done()
	ctx = oidc.ClientContext(ctx, p.client)
	token, err := p.oauth(found, callback).
		Exchange(ctx, q.Get("code"), oauth2.VerifierOption(kept.Verifier))
	if err != nil {
		return wire.Login{}, p.failed(err)
	}

	return p.login(ctx, found, token, kept.Nonce)
}

// SignOut returns the issuer's address at which its own session ends, too. It is "" if the issuer is away
// or has none on its own host. back is our address to which the browser comes back.
func (i *Issuer) SignOut(ctx context.Context, idToken, back string) string {
	p := i.current.Load()
	found, done, err := p.ask(ctx)
	if err != nil {
		return ""
	}
	defer done()
	// A form may lead to no other host: the pages' policy forbids it.
	u, err := url.Parse(found.SignOut)
	if err != nil || u.Host != p.address.Host {
		return ""
	}

	// Okta accepts no sign-out without the ID token, others ask the person without it.
	q := u.Query()
	q.Set("client_id", p.ClientID)
	q.Set("post_logout_redirect_uri", back)
	q.Set("id_token_hint", idToken)
	u.RawQuery = q.Encode()

	return u.String()
}

// ask returns the issuer's discovery document to a caller who may ask the issuer more, until done. Beyond
// askingMax of them it is wire.CodeUnavailable: an issuer that does not answer must cost no more.
func (p *configured) ask(ctx context.Context) (found *discovered, done func(), err error) {
	select {
	case p.asking <- struct{}{}:
	default:
		return nil, nil, wire.Unavailable(answerMax, "Too many people are waiting for the identity provider %s. "+
			"Try again in a moment.", p.Issuer)
	}

	done = func() { <-p.asking }
	found, err = p.discover(ctx)
	if err != nil {
		done()
		return nil, nil, p.failed(err)
	}
	return found, done, nil
}

// discover returns the issuer's discovery document, which is fetched once for all callers.
func (p *configured) discover(ctx context.Context) (*discovered, error) {
	if found := p.found.Load(); found != nil {
		return found, nil
	}

	answer, err, _ := p.finding.Do("", func() (any, error) {
		// The caller who asked first may leave before the others: answerMax ends it.
		provider, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), p.client), p.Issuer)
		if err != nil {
			return nil, err
		}
		found := &discovered{Provider: provider}
		if err := provider.Claims(found); err != nil {
			return nil, err
		}
		p.found.Store(found)
		return found, nil
	})
	found, _ := answer.(*discovered)

	return found, err
}

func (p *configured) oauth(found *discovered, callback string) *oauth2.Config {
	return &oauth2.Config{
		ClientID:     p.ClientID,
		ClientSecret: string(p.ClientSecret),
		Endpoint:     found.Endpoint(),
		RedirectURL:  callback,
		Scopes:       append([]string{oidc.ScopeOpenID, oidc.ScopeEmail}, p.Scopes...),
	}
}

// failed returns what a person reads of a call to the issuer that failed.
func (p *configured) failed(err error) error {
	if answer, ok := errors.AsType[*oauth2.RetrieveError](err); ok && answer.ErrorCode != "" {
		return refused(answer.ErrorCode, answer.ErrorDescription)
	}

	e := wire.Unavailable(0, "The identity provider %s could not be asked. "+
		"Try again in a moment; the server's log has the details.", p.Issuer)
	e.Cause = err

	return e
}

// refused returns the error for an answer of the issuer that is an error.
func refused(code, description string) error {
	return wire.Errorf(wire.CodeForbidden, "The identity provider refused the sign-in: %s %.300s", code, description)
}

// same compares two secrets in constant time. An empty one is like no other.
func same(a, b string) bool {
	return a != "" && subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

// claims are what the issuer asserts about a person, by their names.
type claims map[string]any

// login returns the person whom the issuer's tokens are about.
func (p *configured) login(
	ctx context.Context, found *discovered, token *oauth2.Token, nonce string,
) (wire.Login, error) {
	raw, _ := token.Extra("id_token").(string)
	verifier := found.Verifier(&oidc.Config{
		ClientID: p.ClientID,
		Now:      func() time.Time { return p.Now().Add(-clockSkew) },
	})
	id, err := verifier.Verify(ctx, raw)
	if err != nil {
		return wire.Login{}, untrusted(err)
	}

	all := claims{}
	if err := id.Claims(&all); err != nil {
		return wire.Login{}, untrusted(err)
	}
	switch {
	case !same(nonce, id.Nonce) || id.Subject == "":
		return wire.Login{}, untrusted(errors.New("its ID token is not for this sign-in"))
	case len(id.Audience) > 1 && all["azp"] != p.ClientID:
		return wire.Login{}, untrusted(errors.New("its ID token was issued to another program"))
	}

	if err := p.complete(ctx, found, token, id.Subject, all); err != nil {
		return wire.Login{}, err
	}
	email, err := all.email(p.TrustEmail)
	if err != nil {
		return wire.Login{}, err
	}
	grants, err := p.grants(all)

	return wire.Login{Issuer: p.Issuer, Subject: id.Subject, Email: email, Grants: grants, IDToken: raw}, err
}

func untrusted(err error) error {
	return wire.Errorf(wire.CodeForbidden, "The identity provider's answer was not accepted: %w. "+
		"If it has expired, compare the clocks of both servers. Otherwise ask the operator of this server.", err)
}

// complete asks the issuer for what the ID token lacks. Many issuers put only the subject there.
func (p *configured) complete(
	ctx context.Context, found *discovered, token *oauth2.Token, subject string, all claims,
) error {
	complete := all["email"] != nil && (len(p.Roles) == 0 || all[p.GroupsClaim] != nil)
	if complete || found.UserInfoEndpoint() == "" {
		return nil
	}

	info, err := found.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return p.failed(err)
	}
	// The answer is not signed: it could be about someone else.
	if info.Subject != subject {
		return untrusted(errors.New("it describes another person than its ID token"))
	}
	return info.Claims(&all)
}

// email returns the address of a person, who must have proved that it is theirs: it decides who they
// are here. trusted accepts one of which the issuer says nothing.
func (c claims) email(trusted bool) (string, error) {
	email, _ := c["email"].(string)
	verified, said := c["email_verified"]
	switch {
	case email == "":
		return "", wire.Errorf(wire.CodeForbidden, "The identity provider did not send your email address. "+
			"Ask its administrator to add one to your account there.")
	case verified == true || verified == "true" || trusted && !said:
		return email, nil
	}

	return "", wire.Errorf(wire.CodeForbidden, "The identity provider does not say that %s was verified "+
		"as your email address. Verify it there, then sign in again. If only administrators assign addresses "+
		"there, the operator of this server can allow it with --oidc-trust-email.", email)
}

// grants returns what a person's groups give.
func (p *configured) grants(all claims) (grants []wire.Grant, err error) {
	// Instead of too many groups, Entra ID sends an address at which they could be read.
	if elsewhere, _ := all["_claim_names"].(map[string]any); elsewhere[p.GroupsClaim] != nil {
		return nil, wire.Errorf(wire.CodeForbidden, "You are in more groups than the identity provider "+
			"sends. Its administrator can limit them to those that are assigned to this server.")
	}

	groups, several := all[p.GroupsClaim].([]any)
	if !several {
		// One may come as a text, without a list.
		groups = []any{all[p.GroupsClaim]}
	}
	for _, group := range groups {
		name, _ := group.(string)
		grants = append(grants, p.Roles[name]...)
	}
	return grants, nil
}
