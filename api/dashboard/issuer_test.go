package dashboard

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"promptspool/api/auth"
	"promptspool/api/auth/oidc"
	"promptspool/api/auth/oidc/oidctest"
	"promptspool/api/dashboard/frame"
	"promptspool/api/edge"
	"promptspool/api/wire"
)

// issuerSite is a site where people may sign in at an issuer. Eve edits app by a group there.
type issuerSite struct {
	*site
	issuer *oidctest.Issuer
	ahead  time.Duration // of the server's clock
}

func openIssuerSite(t *testing.T, by wire.SignInBy, public string) *issuerSite {
	t.Helper()
	s := &issuerSite{site: openSite(t)}
	base := "http://localhost"
	if public != "" {
		s.config.PublicURL, _ = url.Parse(public)
		base = public
	}
	s.issuer = oidctest.Start(t, base)
	s.issuer.Put(oidctest.User{Email: "eve@corp.example", Groups: []string{"staff"}})

	now := func() time.Time { return time.Now().Add(s.ahead) }
	s.people = auth.NewPeople(auth.PeopleConfig{
		Store: s.store, Now: now, SignInBy: by, EmergencyOwner: "ann@example.com",
	})
	s.config.People, s.config.Now = s.people, now
	s.config.Issuer = oidc.New(oidc.Config{
		Issuer:       s.issuer.URL,
		ClientID:     oidctest.ClientID,
		ClientSecret: oidctest.ClientSecret,
		GroupsClaim:  "groups",
		Now:          time.Now,
		Roles: map[string][]wire.Grant{"staff": {
			{Project: "app", Role: wire.RoleEditor}, {Project: "team", Role: wire.RoleViewer},
		}},
	})
	s.d = New(s.config)

	return s
}

// browser is a browser with its cookies.
type browser struct {
	s       *issuerSite
	at      *frame.Frame // the server that it calls
	cookies map[string]*http.Cookie
	header  http.Header // that it sends
}

func (s *issuerSite) browser() *browser {
	return &browser{s: s, at: s.d, cookies: map[string]*http.Cookie{}}
}

// call sends a request, as a person does who follows a link or sends a form.
func (b *browser) call(method, path string, form url.Values) *httptest.ResponseRecorder {
	b.s.t.Helper()
	r := b.s.request("", method, path, form)
	maps.Copy(r.Header, b.header)
	for _, cookie := range b.cookies {
		r.AddCookie(cookie)
	}
	w := httptest.NewRecorder()
	b.at.ServeHTTP(w, r)

	for _, cookie := range w.Result().Cookies() {
		b.cookies[cookie.Name] = cookie
		if cookie.MaxAge < 0 {
			delete(b.cookies, cookie.Name)
		}
	}
	return w
}

func (b *browser) get(path string) *httptest.ResponseRecorder { return b.call("GET", path, nil) }

// enter goes through the issuer as a person, and returns the answer to the callback.
func (b *browser) enter(email, next string) *httptest.ResponseRecorder {
	b.s.t.Helper()
	return b.get(b.atIssuer(b.get("/sign-in/oidc?next="+url.QueryEscape(next)), email))
}

// atIssuer signs a person in where an answer sends them, and returns the path of the callback.
func (b *browser) atIssuer(answer *httptest.ResponseRecorder, email string) string {
	b.s.t.Helper()
	to := answer.Header().Get("Location")
	if answer.Code != http.StatusSeeOther || !strings.HasPrefix(to, b.s.issuer.URL) {
		b.s.t.Fatalf("the answer is %d to %q: %s", answer.Code, to, answer.Body)
	}
	back := b.s.issuer.Browser(b.s.t, to, email)
	path := strings.TrimPrefix(back.RequestURI(), b.at.BasePath())
	if !strings.HasPrefix(path, "/sign-in/oidc/callback?") {
		b.s.t.Fatalf("the issuer sends the browser to %s", back)
	}
	return path
}

// leads fails unless an answer sends the browser to a page.
func leads(t *testing.T, answer *httptest.ResponseRecorder, to string) {
	t.Helper()
	if got := answer.Header().Get("Location"); answer.Code != http.StatusSeeOther || got != to {
		t.Errorf("the answer is %d to %q, want %q: %s", answer.Code, got, to, answer.Body)
	}
}

func TestAPersonSignsInByTheButtonAndStays(t *testing.T) {
	s := openIssuerSite(t, wire.SignInByBoth, "")
	eve := s.browser()
	page := eve.get("/sign-in?next=%2Frequests%3Ftag%3Da")
	link := regexp.MustCompile(`href="(/sign-in/oidc[^"]*)">Sign in with 127`).FindStringSubmatch(page.Body.String())
	if link == nil || !says(page, `type="password"`) {
		t.Fatalf("the page is: %s", page.Body)
	}

	callback := eve.atIssuer(eve.get(link[1]), "eve@corp.example")
	for name, c := range eve.cookies {
		if !strings.HasPrefix(name, "__Host-promptspool-attempt-") || !c.HttpOnly || !c.Secure || c.Path != "/" ||
			c.SameSite != http.SameSiteLaxMode || c.MaxAge != 600 {
			t.Errorf("the attempt's cookie is %s", c)
		}
	}
	leads(t, eve.get(callback), "/requests?tag=a")
	if c := eve.cookies[s.cookie]; len(eve.cookies) != 1 || c == nil || !c.HttpOnly || !c.Secure {
		t.Errorf("the cookies are %v", eve.cookies)
	}
	page = eve.get("/")
	if page.Code != http.StatusOK || !says(page, "eve@corp.example") || says(page, `"/password"`) {
		t.Errorf("the first page is %d: %s", page.Code, page.Body)
	}

	// An hour later the next click goes through without another one.
	s.ahead = time.Hour
	answer := eve.get("/requests?tag=b")
	leads(t, answer, "/sign-in/oidc?next=%2Frequests%3Ftag%3Db")
	leads(t, eve.get(eve.atIssuer(eve.get(answer.Header().Get("Location")), "eve@corp.example")), "/requests?tag=b")
	if page := eve.get("/requests?tag=b"); page.Code != http.StatusOK {
		t.Errorf("the page is %d: %s", page.Code, page.Body)
	}

	// The project that was open stays open.
	leads(t, eve.get("/?project=team"), "/")
	s.ahead = 90 * time.Minute
	if page := eve.get("/"); !says(page, " · team · promptspool</title>") {
		t.Errorf("team is not open: %s", page.Body)
	}
	s.ahead = 2 * time.Hour
	leads(t, eve.get(eve.atIssuer(eve.get("/sign-in/oidc"), "eve@corp.example")), "/")
	if page := eve.get("/"); !says(page, " · team · promptspool</title>") {
		t.Errorf("team is not open after a pass through the issuer: %s", page.Body)
	}

	// A script cannot follow to another site.
	s.ahead = 3 * time.Hour
	r := s.request("", "GET", "/requests", nil)
	r.AddCookie(eve.cookies[s.cookie])
	r.Header.Set("Sec-Fetch-Mode", "cors")
	w := httptest.NewRecorder()
	s.d.ServeHTTP(w, r)
	leads(t, w, "/sign-in?next=%2Frequests")
}

func TestASignOutGoesOnToTheIssuer(t *testing.T) {
	for _, after := range []time.Duration{0, 2 * time.Hour} {
		signsOutAtTheIssuer(t, after)
	}
}

func signsOutAtTheIssuer(t *testing.T, after time.Duration) {
	t.Helper()
	s := openIssuerSite(t, wire.SignInByIssuer, "")
	eve := s.browser()
	eve.enter("eve@corp.example", "/")
	page := eve.get("/")
	csrf := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(page.Body.String())
	policy := page.Header().Get("Content-Security-Policy")
	if !strings.Contains(policy, "form-action 'self' "+s.issuer.URL) {
		t.Errorf("the policy is %s", policy)
	}

	s.ahead = after // the session may have ended since the page was shown
	answer := eve.call("POST", "/sign-out", url.Values{"csrf": {csrf[1]}})
	back := s.issuer.Browser(t, answer.Header().Get("Location"), "")
	if passes := s.issuer.Passes("eve@corp.example"); back.String() != "http://localhost/sign-in" || passes > 0 {
		t.Errorf("the browser comes to %s; eve's sessions are %d", back, passes)
	}
	leads(t, eve.get("/requests"), "/sign-in?next=%2Frequests") // and not through the issuer

	// Who signed in by password stays here.
	ann := s.browser()
	ann.call("POST", "/sign-in", signInForm("ann@example.com", password))
	page = ann.get("/")
	csrf = regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(page.Body.String())
	leads(t, ann.call("POST", "/sign-out", url.Values{"csrf": {csrf[1]}}), "/sign-in?done=signed-out")
}

func TestNoLinkLeadsElsewhereAfterTheIssuer(t *testing.T) {
	s := openIssuerSite(t, wire.SignInByBoth, "")
	for _, next := range []string{
		"//evil.example", "https://evil.example/", `/\evil.example`, "/\tx", "javascript:alert(1)", "",
		"/" + strings.Repeat("x", 5000), // is more than a cookie holds
	} {
		leads(t, s.browser().enter("eve@corp.example", next), "/")
	}
}

func TestOnlyTheBrowserThatBeganFinishesAndOnce(t *testing.T) {
	s := openIssuerSite(t, wire.SignInByBoth, "")
	eve, mallory := s.browser(), s.browser()
	planted := mallory.atIssuer(mallory.get("/sign-in/oidc"), "eve@corp.example")

	refuses := func(b *browser, path, text string) {
		t.Helper()
		answer := b.get(path)
		if answer.Code != http.StatusForbidden || !says(answer, text) || b.cookies[s.cookie] != nil {
			t.Errorf("the answer is %d: %s", answer.Code, answer.Body)
		}
	}
	refuses(eve, planted, "begun in another browser")
	refuses(eve, "/sign-in/oidc/callback", "begun in another browser")
	refuses(eve, "/sign-in/oidc/callback?error=x&error_description=Call+555", "begun in another browser")
	leads(t, mallory.get(planted), "/")
	delete(mallory.cookies, s.cookie)
	refuses(mallory, planted, "has been finished")

	// What the issuer says is text.
	begun, _ := url.Parse(eve.get("/sign-in/oidc").Header().Get("Location"))
	q := url.Values{"error": {"access_denied"}, "error_description": {"<b>no</b>"}}
	q.Set("state", begun.Query().Get("state"))
	refuses(eve, "/sign-in/oidc/callback?"+q.Encode(), "access_denied &lt;b&gt;no&lt;/b&gt;")

	// Two tabs at the same time.
	first, second := eve.get("/sign-in/oidc?next=/keys"), eve.get("/sign-in/oidc?next=/templates")
	leads(t, eve.get(eve.atIssuer(first, "eve@corp.example")), "/keys")
	leads(t, eve.get(eve.atIssuer(second, "eve@corp.example")), "/templates")

	for range 30 {
		eve.get("/sign-in/oidc")
	}
	if len(eve.cookies) > 10 {
		t.Errorf("the browser has %d cookies", len(eve.cookies))
	}
}

// What browsers keep for us comes with each request. Beyond the bound of a head, no page is answered any more, so
// whatever a link, a form or a person makes them keep must leave room. The worst is tried of each route.
func TestCookiesFillLessThanHalfOfAHead(t *testing.T) {
	s := openIssuerSite(t, wire.SignInByBoth, "")
	const ann = "ann@example.com"
	s.people = auth.NewPeople(auth.PeopleConfig{Store: s.store, SignUp: wire.SignUpOpen})
	s.config.People = s.people
	s.d = New(s.config)
	pages, ids := s.furnished(ann)

	// Every field of every page is sent to every route: with all its values, and with long ones.
	known := url.Values{"next": nil}
	field := regexp.MustCompile(`<[^>]* name="([^"]+)"(?: value="([^"]+)")?`)
	for _, page := range append(pages, "/sign-in", "/sign-up") {
		body := s.call(ann, "GET", page, nil).Body.String()
		for _, m := range field.FindAllStringSubmatch(body, -1) {
			known[m[1]] = append(known[m[1]], m[2])
		}
	}
	delete(known, "csrf")
	delete(known, "session")

	jar, most, n := s.browser(), 0, 0
	try := func(r frame.Route, length int) (sets bool) {
		n++
		form := url.Values{}
		for name, seen := range known {
			form[name] = seen
			if length > 0 {
				form[name] = []string{"/" + strings.Repeat("a", length)}
			}
		}
		form.Set("email", fmt.Sprintf("p%d@example.com", n))
		form.Set("project", fmt.Sprintf("p%d", n))
		form.Set("password", password)
		form.Del("code")

		method, path, _ := strings.Cut(r.Pattern, " ")
		id := ids[strings.Split(path, "/")[1]]
		path = strings.NewReplacer("{$}", "", "{id}", id, "{name}", "rude", "{page}", "oidc").Replace(path)
		jar.cookies[s.cookie] = &http.Cookie{Name: s.cookie, Value: string(s.signed[ann].Token)}
		if method == http.MethodGet {
			form.Del("project") // it would only be opened
			path += "?" + form.Encode()
		}
		form.Set("csrf", s.signed[ann].CSRF())
		sets = jar.call(method, path, form).Header().Get("Set-Cookie") != ""

		size := len("zone=America/Argentina/ComodRivadavia; ") // which a script sets
		for _, c := range jar.cookies {
			size += len(c.Name) + len("=") + len(c.Value) + len("; ")
		}
		most = max(most, size)
		return sets
	}
	for _, r := range Routes() {
		if strings.HasSuffix(r.Pattern, "/sign-out") {
			continue // it takes away
		}
		sets := try(r, 0)
		for length := 2040; length > 0; length /= 16 {
			sets = try(r, length) || sets
		}
		for n := 0; sets && n < 60; n++ {
			try(r, 2040>>(n/6))
		}
	}

	t.Logf("%d requests, at most %d bytes of cookies: %q", n, most, slices.Sorted(maps.Keys(jar.cookies)))
	if most >= edge.HeadBytesMax/2 || most < 1000 {
		t.Errorf("browsers keep up to %d bytes for us, of %d in a head", most, edge.HeadBytesMax)
	}
}

// A browser that opens its tabs again sends six requests before it has the cookies of any answer.
func TestTabsThatBeginTogetherLeaveRoom(t *testing.T) {
	s := openIssuerSite(t, wire.SignInByIssuer, "")
	size := func(cookies map[string]*http.Cookie) (size int) {
		for _, c := range cookies {
			size += len(c.Name) + len(c.Value) + len("=; ")
		}
		return size
	}
	for length := 1; length < 3000; length += 100 {
		next := "/sign-in/oidc?next=/" + strings.Repeat("a", length)
		eve := s.browser()
		for _, earlier := range []int{0, 1, 20} {
			for range earlier {
				eve.get(next)
			}

			before := maps.Clone(eve.cookies)
			all := maps.Clone(before)
			for range 6 {
				eve.cookies = maps.Clone(before)
				eve.get(next)
				maps.Copy(all, eve.cookies)
			}
			if got := size(all); got > edge.HeadBytesMax-2<<10 {
				t.Errorf("addresses of %d bytes leave cookies of %d, after %d one by one", length, got, earlier)
			}
		}
	}
}

// A page of another site must not fill the room for cookies, nor choose where a person is led.
func TestAForeignPageBeginsNoSignInWithAnAddress(t *testing.T) {
	s := openIssuerSite(t, wire.SignInByIssuer, "")
	for _, site := range []string{"cross-site", "same-site", "same-origin", "none", ""} {
		eve := s.browser()
		eve.header = http.Header{"Sec-Fetch-Site": {site}}
		answer := eve.get("/sign-in/oidc?next=/keys")
		foreign := strings.HasSuffix(site, "-site")
		if begun := answer.Code == http.StatusSeeOther; begun == foreign || len(eve.cookies) > 0 == foreign {
			t.Errorf("from %q the answer is %d, with the cookies %v", site, answer.Code, eve.cookies)
		}
		if foreign && !says(answer, `href="/sign-in/oidc?next=%2Fkeys"`) {
			t.Errorf("from %q the person is not asked: %s", site, answer.Body)
		}
		leads(t, eve.get(eve.atIssuer(eve.get("/sign-in/oidc"), "eve@corp.example")), "/")
	}
}

func TestAnyServerFinishesWhatAnotherBegan(t *testing.T) {
	s := openIssuerSite(t, wire.SignInByBoth, "")
	eve := s.browser()
	begun := eve.get("/sign-in/oidc?next=/templates")
	eve.at = New(s.config) // another process, which knows nothing but the database
	leads(t, eve.get(eve.atIssuer(begun, "eve@corp.example")), "/templates")
	eve.at = s.d
	if page := eve.get("/templates"); page.Code != http.StatusOK {
		t.Errorf("the page is %d", page.Code)
	}
}

func TestBelowAPathTheIssuerComesBackThere(t *testing.T) {
	s := openIssuerSite(t, wire.SignInByBoth, "https://example.com/prompts")
	eve := s.browser()
	leads(t, eve.enter("eve@corp.example", "/templates?q=a"), "/prompts/templates?q=a")
	if c := eve.cookies["__Secure-promptspool"]; len(eve.cookies) != 1 || c == nil || c.Path != "/prompts" {
		t.Errorf("the cookies are %v", eve.cookies)
	}

	csrf := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(eve.get("/").Body.String())
	to := eve.call("POST", "/sign-out", url.Values{"csrf": {csrf[1]}}).Header().Get("Location")
	if back := s.issuer.Browser(t, to, ""); back.String() != "https://example.com/prompts/sign-in" {
		t.Errorf("after signing out the browser comes to %s", back)
	}
}

func TestWhileTheIssuerIsAway(t *testing.T) {
	s := openIssuerSite(t, wire.SignInByIssuer, "")
	eve := s.browser()
	eve.enter("eve@corp.example", "/")
	s.issuer.Set(oidctest.Settings{Away: true})
	s.d = New(s.config) // restarted meanwhile
	s.config.Issuer.(*oidc.Issuer).Set(oidc.Config{Issuer: s.issuer.URL})

	if page := eve.get("/requests"); page.Code != http.StatusOK {
		t.Errorf("eve, who is signed in, gets %d", page.Code)
	}
	bob := s.browser()
	page := bob.get("/sign-in/oidc?next=/requests")
	if page.Code != http.StatusServiceUnavailable || !says(page, "could not be asked") ||
		!says(page, "next=%2Frequests") {
		t.Errorf("bob gets %d: %s", page.Code, page.Body)
	}

	// The emergency door is for one owner.
	if !says(page, "In an emergency") || !says(page, `type="password"`) {
		t.Errorf("there is no emergency door: %s", page.Body)
	}
	vic := bob.call("POST", "/sign-in", signInForm("vic@example.com", password))
	if vic.Code != http.StatusUnauthorized || !says(vic, "Wrong email or password") {
		t.Errorf("vic gets %d: %s", vic.Code, vic.Body)
	}
	leads(t, bob.call("POST", "/sign-in", signInForm("ann@example.com", password)), "/")
	if page := bob.get("/people"); page.Code != http.StatusOK {
		t.Errorf("ann gets %d", page.Code)
	}
}

func TestAFormOutlivesASessionOfTheIssuer(t *testing.T) {
	s := openIssuerSite(t, wire.SignInByIssuer, "")
	eve := s.browser()
	eve.enter("eve@corp.example", "/")
	session, err := s.people.Session(t.Context(), wire.Secret(eve.cookies[s.cookie].Value))
	if err != nil {
		t.Fatal(err)
	}
	s.signed["eve@corp.example"] = session
	form := s.edited("eve@corp.example")

	s.ahead = time.Hour
	page := eve.call("POST", "/template/edit", form)
	pending := url.Values{"pending": {pendingIn(page)}, "next": {"/templates"}}
	if page.Code != http.StatusUnauthorized || pendingIn(page) == "" || !says(page, `target="_blank"`) ||
		!says(page, `action="/sign-in/continue"`) || says(page, "In an emergency") != true {
		t.Fatalf("the page is %d: %s", page.Code, page.Body)
	}

	// Too early, it is kept.
	page = eve.call("POST", "/sign-in/continue", pending)
	if page.Code != http.StatusUnauthorized || pendingIn(page) != pending.Get("pending") {
		t.Errorf("before signing in the page is %d: %s", page.Code, page.Body)
	}

	leads(t, eve.enter("eve@corp.example", "/?done=back-to-tab"), "/?done=back-to-tab") // in the other tab
	if page := eve.get("/?done=back-to-tab"); !says(page, "Go back to the tab") {
		t.Errorf("the other tab shows: %s", page.Body)
	}
	page = eve.call("POST", "/sign-in/continue", pending)
	if page.Code != http.StatusOK || !says(page, typedText) || s.published("greet") {
		t.Errorf("after signing in the page is %d: %s", page.Code, page.Body)
	}

	// Someone else who signs in does not see it.
	s.issuer.Put(oidctest.User{Email: "bob@corp.example", Groups: []string{"staff"}})
	bob := s.browser()
	bob.enter("bob@corp.example", "/")
	leads(t, bob.call("POST", "/sign-in/continue", pending), "/templates?done=other-person")
}

func TestAnInviteIsFollowedThroughTheIssuer(t *testing.T) {
	s := openIssuerSite(t, wire.SignInByIssuer, "")
	code, _, err := s.people.Invite(t.Context(), s.signed["ann@example.com"].User, wire.RoleViewer)
	if err != nil {
		t.Fatal(err)
	}
	s.issuer.Put(oidctest.User{Email: "bob@corp.example"})
	bob := s.browser()
	page := bob.get("/sign-up?code=" + string(code))
	link := regexp.MustCompile(`href="/sign-in/oidc\?next=([^"]*)">Join with`).FindStringSubmatch(page.Body.String())
	if link == nil {
		t.Fatalf("the page is: %s", page.Body)
	}

	// No link to the issuer lets him in: not one of a stranger, of a mail, or of the page to sign in.
	next, _ := url.QueryUnescape(link[1])
	for _, from := range []string{"", "http://evil.example/sign-up", "http://localhost/sign-in?next=" + link[1]} {
		bob.header = http.Header{"Referer": {from}}
		leads(t, bob.enter("bob@corp.example", next), next)
		if bob.cookies[s.cookie] != nil {
			t.Fatalf("from %q bob has joined without being asked", from)
		}
	}

	// He has to press the button of the page that names the project and the role.
	bob.header = http.Header{"Referer": {"http://localhost/sign-up?code=" + string(code)}}
	leads(t, bob.enter("bob@corp.example", next), "/")
	if page := bob.get("/"); page.Code != http.StatusOK || !says(page, "default") || !says(page, "viewer") {
		t.Errorf("bob's first page is %d: %s", page.Code, page.Body)
	}

	// Without an invite and a group there is a reason.
	s.issuer.Put(oidctest.User{Email: "joe@corp.example"})
	answer := s.browser().enter("joe@corp.example", "/")
	if answer.Code != http.StatusForbidden || !says(answer, "you have no role in a project") {
		t.Errorf("joe gets %d: %s", answer.Code, answer.Body)
	}
}

func TestWhereThereIsNoIssuerNothingIsSaidOfIt(t *testing.T) {
	s := openSite(t)
	page := s.call("", "GET", "/sign-in", nil)
	if says(page, "oidc") || !says(page, `type="password"`) || says(page, "emergency") ||
		!strings.Contains(page.Header().Get("Content-Security-Policy"), "form-action 'self';") {
		t.Errorf("the page is %v: %s", page.Header(), page.Body)
	}
	for _, path := range []string{"/sign-in/oidc", "/sign-in/oidc/callback?state=x"} {
		if answer := s.call("", "GET", path, nil); answer.Code != http.StatusNotFound {
			t.Errorf("%s is %d", path, answer.Code)
		}
	}
}
