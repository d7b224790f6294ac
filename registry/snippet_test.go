package registry_test

import (
	"context"
	"strings"
	"testing"

	"promptspool/api/wire"
	"promptspool/registry"
)

func fetchText(t *testing.T, r *registry.Registry, ident string, s wire.Selector) string {
	t.Helper()
	raw, err := r.Raw(context.Background(), ann, ident, s)
	if err != nil {
		t.Fatalf("Raw %s: %v", ident, err)
	}
	return text(raw.Blueprint)
}

func wantFault(t *testing.T, err error, code wire.Code, texts ...string) {
	t.Helper()
	if !wire.IsCode(err, code) {
		t.Fatalf("error is %v, want %s", err, code)
	}
	for _, s := range texts {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("error is %v, want it to say %q", err, s)
		}
	}
}

func TestASnippetStandsInItsPlaceAndFollowsItsLabel(t *testing.T) {
	r := newRegistry(t)
	tone := says("tone", "Be kind.")
	tone.Labels = []string{"prod"}
	publish(t, r, tone)
	publish(t, r, says("tone", "Be brief."))
	publish(t, r, says("greet", "Hi {name}. @@@tone@@@ @@@tone@label:prod@@@ @@@tone@version_number:1@@@"))

	if got := fetchText(t, r, "greet", wire.Selector{}); got != "Hi {name}. Be brief. Be kind. Be kind." {
		t.Errorf("the text is %q", got)
	}

	if _, err := r.CreateLabel(t.Context(), ann, "tone", wire.LabelWrite{Name: "prod", Version: 2}, ""); err != nil {
		t.Fatal(err)
	}

	raw, err := r.Raw(t.Context(), ann, "greet", wire.Selector{Version: 1})
	if err != nil || text(raw.Blueprint) != "Hi {name}. Be brief. Be brief. Be kind." {
		t.Errorf("the text is %q, %v", text(raw.Blueprint), err)
	}
	prod := "prod"
	equal(t, "snippets", raw.Snippets, []wire.UsedSnippet{
		{Name: "tone", Version: 2}, {Name: "tone", Version: 2, Label: &prod}, {Name: "tone", Version: 1},
	})

	source, err := r.Source(t.Context(), ann, "greet", wire.Selector{})
	if err != nil || !strings.Contains(text(source.Blueprint), "@@@tone@label:prod@@@") {
		t.Errorf("the source is %q, %v", text(source.Blueprint), err)
	}
}

func TestASnippetThatIsMissingOrRunsInACircleIsNotPublished(t *testing.T) {
	r := newRegistry(t)
	_, err := r.Publish(t.Context(), ann, says("a", "@@@b@@@"))
	wantFault(t, err, wire.CodeInvalid, "snippet b", "no template")
	publish(t, r, says("c", "end"))
	publish(t, r, says("b", "@@@c@@@"))
	publish(t, r, says("a", "@@@b@@@"))
	_, err = r.Publish(t.Context(), ann, says("c", "@@@a@@@"))
	wantFault(t, err, wire.CodeInvalid, "c -> a -> b -> c")
	_, err = r.Publish(t.Context(), ann, says("a", "@@@b@label:prod@@@"))
	wantFault(t, err, wire.CodeInvalid, "snippet b@label:prod", "no label")
	if got := fetchText(t, r, "a", wire.Selector{}); got != "end" {
		t.Errorf("the published text is %q", got)
	}
}

func TestWhatOthersReferToCannotBeTakenAway(t *testing.T) {
	r := newRegistry(t)
	tone := says("tone", "Be kind.")
	tone.Labels = []string{"prod"}
	publish(t, r, tone)
	publish(t, r, says("greet", "@@@tone@label:prod@@@"))
	wantFault(t, r.Archive(t.Context(), ann, "tone", ""), wire.CodeConflict, "`greet`")
	labels, err := r.Labels(t.Context(), ann, "tone")
	if err != nil {
		t.Fatal(err)
	}
	wantFault(t, r.DeleteLabel(t.Context(), ann, labels.Labels[0].ID, ""), wire.CodeConflict, "`prod`", "`greet`")
	publish(t, r, says("greet", "alone now"))
	if err := r.DeleteLabel(t.Context(), ann, labels.Labels[0].ID, ""); err != nil {
		t.Error(err)
	}
	if err := r.Archive(t.Context(), ann, "tone", ""); err != nil {
		t.Error(err)
	}
}
