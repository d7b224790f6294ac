//go:build linux

package dashboard

import (
	"context"
	"net/http"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/cmd/promptspool/internal/demo"
)

// seededServer is the server that all scenes of daily work share. To fill one takes longer than most scenes.
type seededServer struct {
	once    sync.Once
	node    *harness.Node
	cookies []*http.Cookie // of its owner's session
}

var sharedSeed seededServer

// seeded returns a server with the calls of the demo, and a window in which the account's owner is signed in.
// All scenes share the server, so none may delete or change what others count.
func seeded(t *testing.T) (*harness.Node, *browser) {
	t.Helper()

	s := &sharedSeed
	s.once.Do(func() {
		s.node, s.cookies = fillServer(lasting{t}, filepath.Join(harness.Folder, "seeded"))
		harness.AtEnd(s.node.Kill)
	})
	if s.cookies == nil {
		t.Fatal("the shared server could not be filled; see the first scene that asked for it")
	}
	server := &harness.Node{T: t, Addr: s.node.Addr, Ops: s.node.Ops, Data: s.node.Data}

	return server, openSignedIn(t, server, s.cookies)
}

// lasting is a test whose processes outlive it.
type lasting struct{ testing.TB }

func (lasting) Cleanup(func()) {}

// What scenes count on in the demo.
const (
	demoFailed          = 180 // calls
	demoYesterdayFailed = 9   // calls of support/triage, version 3, with a timeout
	demoOutageFailed    = 60  // calls within an hour, six days ago
	demoPhrase          = "purple elephant"
	demoPhraseAnswers   = 3         // with demoPhrase: others have its words apart
	demoTalkUser        = "user-42" // had one conversation, the day before yesterday
)

// demoMoment returns when the demo ends, about now. Yesterday's failures stay yesterday's, in UTC, and those
// within an hour stay within one of the clock.
func demoMoment() time.Time {
	now := time.Now().UTC()
	today, end := now.Truncate(24*time.Hour), now.Add(15*time.Minute).Truncate(time.Hour)
	earliest, latest := today.Add(8*time.Hour), today.Add(23*time.Hour)
	if end.Before(earliest) {
		return earliest
	}
	if end.After(latest) {
		return latest
	}
	return end
}

// fillServer starts a server, signs its owner up and logs the calls of the demo.
func fillServer(t testing.TB, data string) (*harness.Node, []*http.Cookie) {
	t.Helper()
	server := harness.Begin(t, harness.Program(t), nil, data, "127.0.0.1:0", "server", "--name", "central")
	if !server.Takes() {
		t.Fatalf("the server ended:\n%s", server.Logged())
	}
	cookies := signUp(t, server)
	if err := demo.Fill(context.Background(), "http://"+server.Addr, harness.AdminKey, demoMoment()); err != nil {
		t.Fatal(err)
	}

	return server, cookies
}

// signUp makes Ann the owner of a fresh server, and returns the cookies that her browser would get.
func signUp(t testing.TB, server *harness.Node) []*http.Cookie {
	t.Helper()
	form := url.Values{
		"code":     {harness.SetupCode(server)},
		"email":    {"ann@example.com"},
		"password": {"correct horse battery"},
	}
	// The redirect that follows carries the cookies, which Go's client would not send over plain HTTP.
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.PostForm("http://"+server.Addr+"/sign-up", form)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if len(res.Cookies()) == 0 {
		t.Fatalf("signing up: %s", res.Status)
	}

	return res.Cookies()
}

// openSignedIn opens a window that has the cookies of a session.
func openSignedIn(t *testing.T, server *harness.Node, cookies []*http.Cookie) *browser {
	t.Helper()
	b := openBrowser(t, server)
	for _, cookie := range cookies {
		b.do("sign in", chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
			_, err := cdp.Call(ctx, tab, network.SetCookie, network.SetCookieParams{
				Name:   cookie.Name,
				Value:  cookie.Value,
				URL:    b.base + "/",
				Secure: new(cookie.Secure),
			})
			return err
		}))
	}

	return b
}
