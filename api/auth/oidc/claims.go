package oidc

import (
	"context"
	"errors"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"promptspool/api/wire"
)

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
