//go:build linux

package dashboard

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

func TestTheEditorRefusesWhatCannotBeRenderedUnlessAskedTo(t *testing.T) {
	server, b := founded(t)
	b.visit("/template/edit")
	b.fill("[name=name]", "tickets")
	b.do("write", chromedp.SendKeys("#text-0", "Be kind.\nBe brief."))
	b.choose("fieldset:nth-of-type(2) [name=format]", "jinja2")
	b.do("write", chromedp.SendKeys("#text-1", "Tickets:\n  {% for t in tickets %}{{ t }}"))
	b.waitsFor("#findings-text-1", "Message 2, line 2, column 3 has a {% for %} that is not closed with {% endfor %}")
	b.holds("the line is marked", `document.querySelector(".ink mark.wrong").textContent === "  " &&
		document.querySelector("#text-1").getAttribute("aria-invalid") === "true"`)
	b.press("[value=tool-add]")
	b.fill("[name=tool-name]", "look_up")
	b.fill("#parameters-0", `{"type": "objekt"}`)
	b.waitsFor("#findings-parameters-0", `line 1, column 10 "objekt" is not one of the types string`)
	b.press("[value=save]")
	b.shows("main", "Not saved", "is not one of the types")
	b.shows("#findings-text-1", "Message 2, line 2, column 3 has a {% for %} that is not closed with {% endfor %}")
	if r := server.Get("/prompt-templates"); fmt.Sprint(r.JSON["total"]) != "0" {
		t.Errorf("it was saved: %s", r.Body)
	}
	b.screenshots("refused")
	b.press("[value=save-anyway]")
	b.shows("main", "Saved.", "Version 1 latest", "Cannot be rendered", "Message 2, line 2, column 3", "Tools")
	r := server.Get("/prompt-templates/tickets")
	saved := string(r.Body)
	if !strings.Contains(saved, `Tickets:\n  {% for t in tickets %}{{ t }}`) ||
		!strings.Contains(saved, `Be kind.\nBe brief.`) {
		t.Errorf("the saved version is %s", saved)
	}

	b.fill(".facts .row [name=label]", "prod")
	b.press(".facts form.row button")
	b.shows("main", "The label prod was not moved", "line 2, column 3")
	if r := server.Get("/prompt-templates/tickets?label=prod"); r.Status != http.StatusNotFound {
		t.Errorf("the label was moved: %d", r.Status)
	}
	b.screenshots("not-moved")
	b.press("form.fault button")
	b.shows(".labels li", "prod\nversion 1")

	// Without scripts the editor has the same buttons, and the server names the places.
	b.do("no scripts", scripts(false))
	b.visit("/template/edit?name=tickets")
	b.press("[value=tool-json]")
	b.fill("textarea[name=tool-json]", `{"type": "web_search", "name": "web"}`)
	b.press("[value=tool-up-1]")
	b.press("[value=preview]:not(.hidden)")
	b.shows("#findings-parameters-1", "Tool 2, parameters, line 2, column 11")
	b.press("[value=tool-remove-1]")
	b.press("[value=save]")
	b.shows("#findings-text-1", "Message 2, line 2, column 3")
	b.press("[value=save-anyway]")
	b.shows("main", "Saved.", "Version 2 latest")
	saved = string(server.Get("/prompt-templates/tickets").Body)
	if !strings.Contains(saved, `"tools":[{"name":"web","type":"web_search"}]`) {
		t.Errorf("the tools are those of %s", saved)
	}
}
