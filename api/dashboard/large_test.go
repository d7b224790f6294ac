//go:build !race

package dashboard

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestAFormThatIsTooLongIsNotPromised(t *testing.T) {
	s := openSite(t)
	form := s.edited("eve@example.com")
	s.end("eve@example.com")
	form.Set("text", strings.Repeat(`"`, 1_200_000)) // 3.6 MB as it is sent, 7.2 MB inside JSON
	page := s.call("eve@example.com", "POST", "/template/edit", form)
	if page.Code != http.StatusUnauthorized || pendingIn(page) != "" || says(page, "are kept") {
		t.Errorf("it is answered %d with %d bytes", page.Code, page.Body.Len())
	}

	form.Set("text", strings.Repeat("x", 4_000_000))
	page = s.call("eve@example.com", "POST", "/template/edit", form)
	if again := s.signInWith("eve@example.com", pendingIn(page)); again.Code != http.StatusOK {
		t.Errorf("the longest that is carried answers %d after signing in", again.Code)
	}
}

// Long prompts without line breaks are honest, and so are many long lines.
func TestComparingCostsInProportionToTheText(t *testing.T) {
	cost := func(times int) time.Duration {
		line := strings.Repeat("word ", 20_000*times)
		lines := strings.Repeat(strings.Repeat("some word ", 450)+"\n", 15*times)

		return processor(t, func() {
			diff(line+"left", line+"right")
			diff(lines, strings.ReplaceAll(lines, "some", "any"))
			diff(strings.ReplaceAll(line, " ", "\n"), strings.ReplaceAll(line, "word ", "other\n"))
		})
	}

	once, fourfold := cost(1), cost(4)
	if fourfold > 8*once || fourfold > 5*time.Second {
		t.Errorf("comparing four times as much took %v, not about four times %v", fourfold, once)
	}
}
