package main

import (
	"net/url"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"promptspool/api/auth"
	"promptspool/api/auth/oidc"
	"promptspool/api/dashboard/frame"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
)

// signInFlags say how people sign in: by a password, or at an OpenID Connect issuer.
func signInFlags() []cli.Flag {
	flags := []cli.Flag{
		config.ChoiceFlag("sign-in", string(wire.SignInByBoth),
			"`how` people sign in, without --oidc-issuer always by password",
			string(wire.SignInByBoth), string(wire.SignInByIssuer), string(wire.SignInByPassword)),
		config.TextFlag("emergency-owner", "",
			"the `email` of an owner who may use a password although --sign-in is oidc, when the issuer is away"),
		config.TextFlag("oidc-issuer", "",
			"the `URL` of the OpenID Connect issuer where people sign in, as its discovery document spells it"),
		config.TextFlag("oidc-client-id", "", "the `name` under which the issuer knows this server"),
		config.ListFlag("oidc-role",
			"a role for the members of one of the issuer's groups, as `GROUP=ROLE@PROJECT`; may be repeated"),
		config.TextFlag("oidc-groups-claim", "groups", "the `claim` in which the issuer sends a person's groups"),
		config.ListFlag("oidc-scope", "a `scope` to ask for besides openid and email; may be repeated"),
		config.TextFlag("oidc-session", "1h",
			"the `duration` after which a session passes through the issuer again, without a click"),
		config.SwitchFlag("oidc-trust-email",
			"accept email addresses of which the issuer does not say that they were verified, "+
				"because only its administrators assign them"),
	}
	flags = append(flags, config.SecretFlags("oidc-client-secret",
		"the `secret` with which this server identifies itself to the issuer (default: only PKCE)")...)

	return config.Group("Sign-in", append(flags, config.TrustFlags("oidc")...)...)
}

// signIn is what signInFlags say.
type signIn struct {
	people auth.PeopleConfig
	issuer oidc.Config // without an Issuer, people use passwords
}

// at returns the issuer for the pages: nil if people do not sign in there.
func (s signIn) at(issuer *oidc.Issuer) frame.Issuer {
	if s.issuer.Issuer == "" || s.people.SignInBy == wire.SignInByPassword {
		return nil
	}
	return issuer
}

// signInOf reads signInFlags.
func signInOf(r *config.Reader) signIn {
	s := signIn{
		people: auth.PeopleConfig{
			SignUp:         signUpOf(r),
			SignInBy:       wire.SignInBy(r.OneOf("sign-in")),
			EmergencyOwner: r.Text("emergency-owner"),
			IssuerSession:  r.Duration("oidc-session"),
		},
		issuer: oidc.Config{
			Issuer:       r.Text("oidc-issuer"),
			ClientSecret: r.Secret("oidc-client-secret"),
			Scopes:       r.List("oidc-scope"),
			GroupsClaim:  r.Text("oidc-groups-claim"),
			Roles:        groupRolesOf(r),
			TrustEmail:   r.Given("oidc-trust-email"),
			TLS:          r.Trust("oidc"),
			Now:          time.Now,
		},
	}

	for _, grants := range s.issuer.Roles {
		for _, g := range grants {
			s.people.GroupProjects = append(s.people.GroupProjects, g.Project)
		}
	}

	u, err := url.Parse(s.issuer.Issuer)
	switch {
	case s.issuer.Issuer == "" && s.people.SignInBy == wire.SignInByIssuer:
		r.Required("oidc-issuer")
	case s.issuer.Issuer == "":
	case err != nil || u.Host == "" || u.Scheme != "https" && !(u.Scheme == "http" && config.IsLoopback(u.Hostname())):
		r.Reject("oidc-issuer", "is not a URL such as https://id.example.com/realms/staff")
	default:
		s.issuer.ClientID = r.Required("oidc-client-id")
	}

	return s
}

// groupRolesOf reads --oidc-role.
func groupRolesOf(r *config.Reader) map[string][]wire.Grant {
	roles := map[string][]wire.Grant{}
	for _, text := range r.List("oidc-role") {
		// The name of a group may contain the sign as well: "cn=admins,dc=example".
		at := max(strings.LastIndexByte(text, '='), 0)
		role, project, _ := strings.Cut(text[at:], "@")
		grant := wire.Grant{Project: project, Role: wire.Role(strings.TrimPrefix(role, "="))}
		if at == 0 || !grant.Role.Known() || !auth.IsProject(project) {
			r.RejectValue("oidc-role", text,
				"is not GROUP=ROLE@PROJECT, with a role and a project's name, such as staff=viewer@default")
			continue
		}
		roles[text[:at]] = append(roles[text[:at]], grant)
	}
	return roles
}
