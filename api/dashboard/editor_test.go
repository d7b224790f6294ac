package dashboard

import (
	"net/http"
	"net/url"
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
		`<code>template_format</code>, which belongs to each message`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the editor does not show %s:\n%s", want, page)
		}
	}
}

// A slip in a label's name does not make a label.
func TestANewLabelIsAskedForBeforeItIsMade(t *testing.T) {
	s := openSite(t)
	const ann, question = "ann@example.com", "Create the new label prdo? Existing: prod, staging. Did you mean prod?"
	s.publishes(ann, "one")
	s.publishes(ann, "two")
	move := func(label string, more ...string) int {
		form := s.form(ann, append(more, "name", "greet", "label", label, "version", "1")...)
		page := s.call(ann, "POST", "/template/label", form)
		if asks := strings.Contains(page.Body.String(), question); asks != (label == "prdo" && more == nil) {
			t.Errorf("the label %s %v is answered: %s", label, more, page.Body)
		}
		return page.Code
	}
	save := func(label string, more ...string) int {
		form := s.edited(ann)
		form.Set("new", "false")
		form.Set("label", label)
		form.Set("base", "2")
		form.Set("text", "of "+label)
		for i := 0; i < len(more); i += 2 {
			form.Set(more[i], more[i+1])
		}
		page := s.call(ann, "POST", "/template/edit", form)
		if asks := strings.Contains(page.Body.String(), question); asks != (label == "prdo" && more == nil) {
			t.Errorf("saving with the label %s %v is answered: %s", label, more, page.Body)
		}
		return page.Code
	}

	// A label that exists, and one that was agreed to.
	if move("prod") != http.StatusSeeOther || move("staging", "anyway", "true") != http.StatusSeeOther {
		t.Error("these labels are not moved, or made")
	}
	if move("prdo") != http.StatusUnprocessableEntity || save("prdo") != http.StatusUnprocessableEntity {
		t.Error("a new label is made without a question")
	}
	if save("prod") != http.StatusSeeOther {
		t.Error("a version is not saved with a label that exists")
	}
	if save("prdo", "agreed", "prdo", "base", "3") != http.StatusSeeOther {
		t.Error("a version is not saved with a new label, after the question")
	}
	head, err := s.drafts.Head(t.Context(), s.as(ann), "greet")
	labels := url.Values{}
	for _, name := range []string{"prod", "staging", "prdo"} {
		labels.Set(name, labelVersion(head.Labels, name))
	}
	if got := labels.Encode(); err != nil || got != "prdo=4&prod=3&staging=1" {
		t.Errorf("in the end the labels are %s, %v", got, err)
	}
}
