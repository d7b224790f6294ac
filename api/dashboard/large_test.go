package dashboard

import (
	"net/http"
	"strings"
	"testing"
)

func TestAFormThatIsTooLongIsNotPromised(t *testing.T) {
	s := openSite(t)
	form := s.edited("eve@example.com")
	s.end("eve@example.com")

	form.Set("text", strings.Repeat(`"`, 1_200_000)) // 3.6 MB as sent, 7.2 MB inside JSON
	page := s.call("eve@example.com", "POST", "/template/edit", form)
	if page.Code != http.StatusUnauthorized || pendingIn(page) != "" || says(page, "are kept") {
		t.Errorf("the form is answered %d with %d bytes", page.Code, page.Body.Len())
	}

	form.Set("text", strings.Repeat("x", 4_000_000))
	page = s.call("eve@example.com", "POST", "/template/edit", form)
	if again := s.signInWith("eve@example.com", pendingIn(page)); again.Code != http.StatusOK {
		t.Errorf("the longest form that is kept answers %d after signing in", again.Code)
	}
}
