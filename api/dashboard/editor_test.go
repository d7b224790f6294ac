package dashboard

import (
	"strings"
	"testing"
)

func TestTheEditorNamesVariablesThatNothingUses(t *testing.T) {
	s := openSite(t)
	form := s.form("ann@example.com", "do", "preview", "new", "true", "kind", "chat", "name", "x", "settings", "{}",
		"other", `{"template_format": "jinja2"}`,
		"variables", `{"shop": "Nordlys", "customer": "Ann", "city": "Oslo"}`)
	form["role"], form["text"] = []string{"system", "user"}, []string{"You speak for {shop}.", "Hello."}
	page := s.call("ann@example.com", "POST", "/template/edit", form).Body.String()
	for _, want := range []string{
		`Uses <code class="badge">shop</code> </p>`,
		`Not used: <code class="badge">city</code> <code class="badge">customer</code> </p>`,
		`<code>template_format</code>, which belongs to each message`, `value="format"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the editor does not show %s:\n%s", want, page)
		}
	}
}
