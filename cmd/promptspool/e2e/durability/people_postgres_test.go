//go:build linux

package durability

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

// visitor is a person's browser at one server, without a window.
type visitor struct {
	*http.Client
	t      *testing.T
	server *harness.Node
}

func visits(t *testing.T, server *harness.Node) visitor {
	t.Helper()

	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}

	return visitor{&http.Client{Jar: jar}, t, server}
}

// sends sends a form, and returns the page that follows.
func (v visitor) sends(path string, pairs ...string) string {
	v.t.Helper()

	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	res, err := v.PostForm("http://"+v.server.Addr+path, form)

	return v.page(res, err)
}

// sees returns the page at a path.
func (v visitor) sees(path string) string {
	v.t.Helper()
	res, err := v.Get("http://" + v.server.Addr + path)

	return v.page(res, err)
}

func (v visitor) page(res *http.Response, err error) string {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
	defer res.Body.Close()

	text, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatal(err)
	}

	return string(text)
}

// codeIn returns the code in the link that a command printed.
func codeIn(t *testing.T, printed string) string {
	t.Helper()
	_, code, _ := strings.Cut(harness.LinkPath(t, printed), "code=")

	return code
}

// managesPeople has an operator run every people command beside one server, and people
// use the links at another server of the same database, in which ann@example.com is the
// only owner.
func managesPeople(t *testing.T, beside, other *harness.Node) {
	t.Helper()

	bob, ann := visits(t, other), visits(t, other)
	invite := codeIn(t, harness.PeopleSay(t, beside, "invite", "--role", "editor"))
	bob.sends("/sign-up", "code", invite, "email", "bob@example.com", "password", "correct horse battery")
	if page := bob.sees("/templates"); !strings.Contains(page, "bob@example.com") {
		t.Fatalf("a person invited beside one server cannot sign up at the other: %s", page)
	}
	again := visits(t, other).sends("/sign-up",
		"code", invite, "email", "eve@example.com", "password", "correct horse battery")
	if !strings.Contains(again, "This code is invalid or has expired.") {
		t.Errorf("an invitation works twice: %s", again)
	}

	// A reset ends the sessions of the forgotten password, at the other server as well.
	ann.sends("/sign-in", "email", "ann@example.com", "password", "correct horse battery")
	if page := ann.sees("/people"); !strings.Contains(page, "bob@example.com") {
		t.Fatalf("the owner does not see the new person: %s", page)
	}
	log := ann.sees("/audit")
	for _, joined := range []string{"as owner, with the setup code", "as editor, invited by operator"} {
		if !strings.Contains(log, `<td>join account</td><td class="wrap">default</td><td class="wrap">`+joined) {
			t.Errorf("the audit log does not say who joined %s: %s", joined, log)
		}
	}
	reset := codeIn(t, harness.PeopleSay(t, beside, "reset-password", "ann@example.com"))
	visits(t, other).sends("/reset-password", "code", reset, "password", "another good password")
	if page := ann.sees("/people"); strings.Contains(page, "bob@example.com") {
		t.Error("a reset leaves the earlier sessions")
	}
	page := ann.sends("/sign-in", "email", "ann@example.com", "password", "another good password")
	if !strings.Contains(page, "Overview") {
		t.Errorf("the new password does not sign in: %s", page)
	}

	harness.PeopleSay(t, beside, "disable", "bob@example.com")
	if page := bob.sees("/templates"); strings.Contains(page, "bob@example.com") {
		t.Error("a person disabled beside one server stays signed in at the other")
	}
	list := strings.Split(harness.PeopleSay(t, other, "list", "--account", "default"), "\n")
	if len(list) != 4 ||
		!strings.HasPrefix(list[1], "ann@example.com  default  owner ") || !strings.HasSuffix(list[1], "  -") ||
		!strings.HasPrefix(list[2], "bob@example.com  default  editor") || strings.HasSuffix(list[2], "  -") {
		t.Errorf("people list prints:\n%s", strings.Join(list, "\n"))
	}
	got := harness.Say(t, "people", "disable", "ann@example.com", "--data", beside.Data)
	if got.Code != 1 || !strings.Contains(got.Err, "owner") {
		t.Errorf("the last owner is disabled: %+v", got)
	}
	harness.PeopleSay(t, other, "enable", "bob@example.com")
	page = bob.sends("/sign-in", "email", "bob@example.com", "password", "correct horse battery")
	if !strings.Contains(page, "bob@example.com") {
		t.Errorf("an enabled person cannot sign in: %s", page)
	}
}
