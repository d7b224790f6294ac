package main

import (
	"net/url"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"promptspool/api/ops"
	"promptspool/cmd/promptspool/internal/config"
)

func TestPublicURL(t *testing.T) {
	withoutVariables(t)
	for given, want := range map[string]string{
		"":                                   "",
		"https://Prompts.Example.com:443":    "https://prompts.example.com",
		"https://example.com/a/promptspool/": "https://example.com/a/promptspool",
		"http://localhost:8788/promptspool":  "http://localhost:8788/promptspool",
		"https://example.com:8443":           "https://example.com:8443",
	} {
		within(t, publicFlags(), []string{"--public-url", given}, func(c *cli.Context) {
			r := config.Read(c)
			got := publicAddressOf(r)
			if got.or("") != want || r.Err() != nil {
				t.Errorf("%q is read as %q (%v), want %q", given, got.or(""), r.Err(), want)
			}
		})
	}

	for given, want := range map[string]string{
		"prompts.example.com":        "is not a URL",
		"ftp://example.com":          "is not a URL",
		"https://":                   "is not a URL",
		"https://ann@example.com":    "is not a URL",
		"https://example.com/?a=b":   "is not a URL",
		"https://example.com/a b":    "letters, digits",
		"https://example.com/a//b":   "letters, digits",
		"https://example.com/a/../b": "letters, digits",
		"https://example.com/a%2Fb":  "letters, digits",
		"http://prompts.internal":    "--cookies-insecure",
	} {
		within(t, publicFlags(), []string{"--public-url", given}, func(c *cli.Context) {
			r := config.Read(c)
			publicAddressOf(r)
			if err := r.Err(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", given, err, want)
			}
		})
	}
}

func TestCookiesAreInsecureOnlyWhereTheyMustBe(t *testing.T) {
	withoutVariables(t)
	for _, c := range []struct {
		url  string
		want bool // accepted
	}{{"http://prompts.internal/a", true}, {"", true}, {"https://example.com", false}} {
		within(t, publicFlags(), []string{"--cookies-insecure", "--public-url", c.url}, func(ctx *cli.Context) {
			r := config.Read(ctx)
			if publicAddressOf(r); (r.Err() == nil) != c.want {
				t.Errorf("%q with --cookies-insecure: %v", c.url, r.Err())
			}
		})
	}
}

func TestWrongProxiesAreNamed(t *testing.T) {
	withoutVariables(t)
	const flag = "--trusted-proxy"
	args := []string{flag, "10.0.0.0/8, unix", flag, "10.0.0.0/40", flag, "nginx"}
	within(t, publicFlags(), args, func(c *cli.Context) {
		r := config.Read(c)
		publicAddressOf(r)
		for _, wrong := range []string{`"10.0.0.0/40"`, `"nginx"`} {
			if err := r.Err(); err == nil || !strings.Contains(err.Error(), wrong) {
				t.Errorf("%s is not named: %v", wrong, err)
			}
		}
		if strings.Contains(r.Err().Error(), `"unix"`) || strings.Contains(r.Err().Error(), `"10.0.0.0/8"`) {
			t.Errorf("what is right is named: %v", r.Err())
		}
	})
}

func TestLinksForPeopleKeepABasePath(t *testing.T) {
	withoutVariables(t)
	for base, want := range map[string]string{
		"https://example.com":               "https://example.com/sign-up?code=c",
		"https://example.com/promptspool":   "https://example.com/promptspool/sign-up?code=c",
		"http://[::]:8788":                  "http://localhost:8788/sign-up?code=c",
		"http://0.0.0.0:8788/a/promptspool": "http://localhost:8788/a/promptspool/sign-up?code=c",
	} {
		if got := linkTo(base, "/sign-up", "c"); got != want {
			t.Errorf("below %s: %s, want %s", base, got, want)
		}
	}

	server := ops.ControlConfig{People: twoPeople{}, Server: "https://example.com/promptspool"}
	t.Setenv("PROMPTSPOOL_DATA", controlledBy(t, server))
	const want = "https://example.com/promptspool/sign-up?code=aaaaa-bbbbb\n"
	if got := say(t, "people", "invite"); !strings.HasPrefix(got.Out, want) {
		t.Errorf("an invite: %+v, want %s", got, want)
	}
}

func TestTheFirstPersonIsSentToThePublicAddress(t *testing.T) {
	u, err := url.Parse("https://example.com/promptspool")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	welcome(&b, publicAddress{url: u}.or("http://127.0.0.1:8788"), "the-code")
	if !strings.Contains(b.String(), "https://example.com/promptspool/sign-up?code=the-code") {
		t.Error(b.String())
	}
}
