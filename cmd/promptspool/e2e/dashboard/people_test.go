//go:build linux

package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"promptspool/cmd/promptspool/e2e/harness"
)

// value returns the value of a field.
func (b *browser) value(selector string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, stepTimeMax)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Value(selector))
	if err != nil {
		b.t.Fatalf("the value of %s: %v", selector, err)
	}
	return value
}

// leaves visits another page from one that asks before it is left, and confirms.
func (b *browser) leaves(path string) {
	b.t.Helper()
	asked := make(chan error, 1)
	questions := chromedp.Events(b.ctx, page.JavascriptDialogOpening)
	accept := chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
		return err
	})
	go func() {
		for q, err := range questions {
			if err == nil && q.Type != page.DialogTypeBeforeunload {
				err = fmt.Errorf("it is asked %q", q.Message)
			}
			asked <- errors.Join(err, chromedp.Do(b.ctx, accept))
			return
		}
	}()

	b.visit(path)
	select {
	case err := <-asked:
		if err != nil {
			b.t.Fatalf("leaving for %s: %v", path, err)
		}
	default:
		b.t.Fatalf("nothing is asked when unsaved changes are left for %s", path)
	}
}

// drafts returns how many drafts the browser keeps.
func (b *browser) drafts() int {
	b.t.Helper()
	n, err := chromedp.Run(b.ctx, chromedp.Evaluate[int](`Object.keys(localStorage).length`))
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

// choosePassword uses a reset link outside the browser.
func choosePassword(t *testing.T, b *browser, link, password string) {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Jar: jar}
	form := url.Values{"code": {u.Query().Get("code")}, "password": {password}}
	res, err := c.PostForm(b.base+"/reset-password", form)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("a reset link answers %d", res.StatusCode)
	}
}

// signIn fills in the sign-in page, and sends it.
func (b *browser) signIn(email, password string) {
	b.t.Helper()
	b.fill("[name=email]", email)
	b.fill("[name=password]", password)
	b.press("main .primary")
}

func TestWhatIsTypedOutlivesASessionAndPeopleComeByLinks(t *testing.T) {
	server, b := founded(t)
	source := axe(t)
	publishVersion(server, 0)

	// The session ends while somebody edits; saving leads through the sign-in page, and
	// back.
	b.visit("/template/edit?name=greet+customers")
	b.fill("#text-0", "Greet {shop}'s customers in verse.")
	b.press("[value=add]")
	b.do("write", chromedp.SendKeys("#text-2", "Gladly,\nand at length."))
	reset := harness.LinkPath(t, harness.PeopleSay(t, server, "reset-password", "ann@example.com"))
	choosePassword(t, b, reset, "another good password")
	b.press("[value=save]")
	b.shows("main", "Your session has expired. Sign in to continue; your changes are kept.")
	b.accessible(source, "an expired session")
	b.screenshots("expired")
	b.signIn("ann@example.com", "correct horse battery")
	b.shows("main", "Wrong email or password.")
	b.signIn("ann@example.com", "another good password")
	b.shows("main", "Nothing has been sent yet")
	b.accessible(source, "a form that is shown again")
	first, third := b.value("#text-0"), b.value("#text-2")
	if first != "Greet {shop}'s customers in verse." || third != "Gladly,\nand at length." {
		t.Fatalf("the editor shows %q and %q", first, third)
	}
	b.screenshots("resumed")
	b.press("[value=save]")
	b.shows("main", "Saved.", "Version 2 latest", "in verse", "and at length.")

	// What was typed and not saved is offered again, until it is discarded, or saved, or
	// its author signs out.
	edit := "/template/edit?name=greet+customers"
	b.visit(edit)
	if b.text("#draft:not([hidden])") != "" {
		t.Error("a draft of what was saved is offered")
	}
	b.do("type", chromedp.SendKeys("#text-0", " Briefly."))
	b.leaves(edit)
	b.waitsFor("#draft:not([hidden])", "You have unsaved changes from less than a minute ago.")
	b.screenshots("draft")
	b.press("[data-draft=restore]")
	if text := b.value("#text-0"); !strings.HasPrefix(text, " Briefly.Greet") {
		t.Errorf("restored is %q", text)
	}
	b.leaves(edit)
	b.waitsFor("#draft:not([hidden])", "unsaved changes")
	b.do("discard", chromedp.Click("[data-draft=discard]"))
	b.visit(edit)
	if b.text("#draft:not([hidden])") != "" {
		t.Error("a discarded draft is offered")
	}
	b.do("type", chromedp.SendKeys("#text-0", " Briefly."))
	b.leaves("/templates")
	if n := b.drafts(); n != 1 {
		t.Errorf("%d drafts are kept, want 1", n)
	}
	b.signsOut()
	if n := b.drafts(); n != 0 {
		t.Errorf("after signing out %d drafts are left", n)
	}

	// The secret of a key is shown once.
	b.visit("/sign-in")
	b.signIn("ann@example.com", "another good password")
	b.visit("/keys")
	b.do("open the form", chromedp.Click(".new > summary"))
	b.fill("[name=name]", "shop")
	b.fill("[name=expires]", "3d")
	b.fill("[name=prefix]", "shop/")
	b.do("all rights", chromedp.Click("[name=scope][value=full]"))
	b.press(".new-key .primary")
	b.shows("[role=alert]", "prefix must be empty with the rights read and manage")
	b.fill("[name=prefix]", "")
	b.press(".new-key .primary")
	b.shows("table", "shop", "full", "never", "ends in 3 days")
	b.screenshots("keys")
	rotate := "tr:last-child .key-acts"
	b.do("open the form", chromedp.Click(rotate+" summary"))
	b.screenshots("keys-rotate")
	b.press(rotate + " details button")
	b.shows("[role=status]", "works until")
	b.shows("table", "replaced by", "ends in 24 hours")
	key := strings.TrimSpace(b.text("#secret"))
	if r := server.Call("GET", "/prompt-templates", nil, "X-API-KEY", key); r.Status != http.StatusOK {
		t.Errorf("the key %q: %d %s", key, r.Status, r.Body)
	}
	b.does("load it again", chromedp.Reload())
	b.holds("the form is not sent again, nor the secret shown", `location.pathname === "/keys" &&
		!document.querySelector("[role=alert], #secret")`)

	// Another person joins with a link from the owner, and gets one when the password is
	// forgotten.
	b.visit("/people")
	b.choose("[action$='/invites'] [name=role]", "editor")
	b.press("[action$='/invites'] .primary")
	b.shows("main", "Send this link. It works once and expires on")
	b.screenshots("invited")
	link := strings.TrimSpace(b.text("#link"))
	b.signsOut()
	b.visit(strings.TrimPrefix(link, b.base))
	b.shows("main", "You are joining the project default as an editor")
	b.screenshots("joining")
	b.signIn("bob@example.com", "correct horse battery")
	b.visit("/template/edit?name=greet+customers")
	if b.text("#draft:not([hidden])") != "" {
		t.Error("the draft of another person is offered")
	}
	b.signsOut()

	b.visit("/sign-in")
	b.signIn("ann@example.com", "another good password")
	b.visit("/people")
	b.press(`[aria-label="Reset password of bob@example.com"]`)
	b.shows("main", "Send this link to bob@example.com. It works once and expires in 24 hours.")
	b.screenshots("resetting")
	reset = strings.TrimSpace(b.text("#link"))
	b.signsOut()
	b.visit(strings.TrimPrefix(reset, b.base))
	b.screenshots("reset")
	b.fill("[name=password]", "a new one to remember")
	b.press("main .primary")
	b.shows("main", "Your password has been changed.")
	b.visit(strings.TrimPrefix(reset, b.base))
	b.shows("main", "This link is invalid, has expired or has been used.")

	// Beside the server.
	list := harness.PeopleSay(t, server, "list", "--project", "default")
	if !strings.Contains(list, "ann@example.com") || !strings.Contains(list, "bob@example.com") {
		t.Errorf("people list prints %s", list)
	}
	harness.PeopleSay(t, server, "disable", "bob@example.com")
	b.visit("/templates")
	b.shows("main", "Sign in")
	b.signIn("bob@example.com", "a new one to remember")
	b.shows("main", "Wrong email or password.")
	b.visit(harness.LinkPath(t, harness.PeopleSay(t, server, "invite", "--role", "owner")))
	b.shows("main", "as an owner")
	got := harness.Say(t, "people", "disable", "ann@example.com", "--data", server.Data)
	if got.Code != 1 || !strings.Contains(got.Err, "people invite --project default --role owner") {
		t.Errorf("the last owner is disabled: %+v", got)
	}
}
