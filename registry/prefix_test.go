package registry_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"promptspool/api/wire"
)

// support is a key of ann's account for the templates below support/.
var support = wire.Identity{
	Account: "acme", KeyID: "k2", Scope: wire.ScopeApp | wire.ScopePublish, Prefix: "support/", Key: "s",
	Verified: true,
}

// released is a template with the label prod.
func released(name, text string) wire.Publish {
	p := says(name, text)
	p.Labels = []string{"prod"}
	return p
}

func TestForAKeyWithAPrefixOtherTemplatesDoNotExist(t *testing.T) {
	r, ctx := newRegistry(t), t.Context()
	mine := publish(t, r, released("support/greet", "hello"))
	others := publish(t, r, released("hr/salary", "hush"))
	archived := publish(t, r, released("hr/old", "hush"))
	if err := r.Archive(ctx, ann, "hr/old", ""); err != nil {
		t.Fatal(err)
	}
	missing := publish(t, newRegistry(t), says("other", "x")).ID + 98 // no template has it

	// calls are all that take a template, or a label of one.
	calls := func(ident string, label int64) map[string]error {
		errs := map[string]error{}
		note := func(name string, err error) { errs[name] = err }
		_, err := r.Fetch(ctx, support, ident, wire.TemplateFetch{})
		note("fetch", err)
		_, err = r.Fetch(ctx, support, ident, wire.TemplateFetch{Selector: wire.Selector{Label: "none"}})
		note("fetch a label", err)
		_, err = r.Raw(ctx, support, ident, latest)
		note("raw", err)
		_, err = r.Source(ctx, support, ident, latest)
		note("source", err)
		_, err = r.Labels(ctx, support, ident)
		note("labels", err)
		_, err = r.CreateLabel(ctx, support, ident, wire.LabelWrite{Name: "dev", Version: 1}, "")
		note("create a label", err)
		_, err = r.Patch(ctx, support, ident, wire.TemplatePatch{Content: []byte(`"hi"`)})
		note("patch", err)
		_, err = r.MoveLabel(ctx, support, label, 1, "")
		note("move a label", err)
		note("delete a label", r.DeleteLabel(ctx, support, label, ""))
		note("archive", r.Archive(ctx, support, ident, ""))
		note("restore", r.Restore(ctx, support, ident, ""))

		return errs
	}

	labelOf := func(id int64) int64 { return wire.LabelID(id, 1) }
	absent := calls(fmt.Sprint(missing), labelOf(missing))
	for ident, id := range map[string]int64{
		"hr/salary": others.ID, fmt.Sprint(others.ID): others.ID,
		"hr/old": archived.ID, fmt.Sprint(archived.ID): archived.ID,
	} {
		// The answers are those for a template that there never was.
		for name, err := range calls(ident, labelOf(id)) {
			as := strings.NewReplacer(
				fmt.Sprint(labelOf(missing)), fmt.Sprint(labelOf(id)), "`"+fmt.Sprint(missing)+"`", "`"+ident+"`",
			).Replace(absent[name].Error())
			if !wire.IsCode(err, wire.CodeNotFound) || err.Error() != as {
				t.Errorf("%s of %s: %v; want %s", name, ident, err, as)
			}
		}
	}

	for _, ident := range []string{"support/greet", fmt.Sprint(mine.ID)} {
		out, err := r.Fetch(ctx, support, ident, wire.TemplateFetch{})
		if err != nil || text(out.Blueprint) != "hello" {
			t.Errorf("%s: %+v, %v", ident, out, err)
		}
	}
	list, err := r.List(ctx, support, wire.TemplateListQuery{Status: "all"})
	if err != nil || list.Total != 1 || list.Items[0].Name != "support/greet" {
		t.Errorf("the list has %+v, %v", list, err)
	}
	if all, err := r.List(ctx, ann, wire.TemplateListQuery{Status: "all"}); err != nil || all.Total != 3 {
		t.Errorf("without a prefix the list has %d, %v", all.Total, err)
	}
}

func TestAKeyWithAPrefixIsToldOfIt(t *testing.T) {
	r := newRegistry(t)
	publish(t, r, released("hr/salary", "hush"))
	for ident, want := range map[string]string{
		"hr/salary": "There is no template `hr/salary` for this key, " +
			"which sees those whose names begin with `support/`.",
		"support/none": "There is no template `support/none`. GET /prompt-templates lists those that exist.",
	} {
		_, err := r.Raw(t.Context(), support, ident, latest)
		equal(t, ident, wire.AsError(err).Message, want)
	}
}

func TestAKeyWithAPrefixPublishesOnlyBelowIt(t *testing.T) {
	r, ctx := newRegistry(t), t.Context()
	if _, err := r.Publish(ctx, support, says("support/greet", "hello")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"hr/salary", "supportive", "support"} {
		_, err := r.Publish(ctx, support, says(name, "x"))
		if !wire.IsCode(err, wire.CodeForbidden) || !strings.Contains(err.Error(), "`support/`") {
			t.Errorf("publishing %s: %v", name, err)
		}
	}

	// Another one's text does not come with its own template, whatever the reference is.
	secret := publish(t, r, says("hr/salary", "hush"))
	for _, ref := range []string{"hr/salary", fmt.Sprint(secret.ID)} {
		p := says("support/leak", "@@@"+ref+"@@@")
		if _, err := r.Publish(ctx, support, p); !wire.IsCode(err, wire.CodeInvalid) {
			t.Errorf("a template with the snippet %s: %v", ref, err)
		}
	}
	// What somebody else has put in is a part of the template.
	publish(t, r, says("support/signed", "@@@hr/salary@@@ @@@support/greet@@@"))
	if out, err := r.Fetch(ctx, support, "support/signed", wire.TemplateFetch{}); err != nil {
		t.Errorf("a template with a snippet from elsewhere: %+v, %v", out, err)
	}

	// Conflicts name no other templates.
	p := says("hr/external", "x")
	p.ExternalIDs = []wire.ExternalID{{Source: "git", ID: "1"}}
	publish(t, r, p)
	p.Name = "support/external"
	_, err := r.Publish(ctx, support, p)
	publish(t, r, says("hr/uses", "@@@support/greet@@@"))
	for _, err := range []error{err, r.Archive(ctx, support, "support/greet", "")} {
		if !wire.IsCode(err, wire.CodeConflict) || strings.Contains(err.Error(), "hr/") {
			t.Errorf("a conflict: %v", err)
		}
	}
}

func TestTheCacheKeepsToAPrefix(t *testing.T) {
	fetch := func(t *testing.T, c *sidecar, id wire.Identity, ident string) string {
		out, err := c.Fetch(t.Context(), id, ident, wire.TemplateFetch{})
		if err != nil {
			return string(wire.AsError(err).Code)
		}
		return text(out.Blueprint)
	}

	scene(t, "a copy is served to the keys that may have it", func(t *testing.T, s *server, dir string) {
		s.publish(t, says("support/greet", "hello"))
		s.publish(t, says("hr/salary", "hush"))
		c := start(t, dir, s)
		synctest.Wait()
		for _, away := range []bool{false, true} {
			for ident, want := range map[string][2]string{
				"support/greet": {"hello", "hello"}, "1": {"hello", "hello"},
				"hr/salary": {"hush", "not_found"}, "2": {"hush", "not_found"},
			} {
				equal(t, "ann: "+ident, fetch(t, c, ann, ident), want[0])
				equal(t, "support: "+ident, fetch(t, c, support, ident), want[1])
				_, err := c.Raw(t.Context(), support, ident, latest)
				equal(t, "support, raw: "+ident, err == nil, want[1] == "hello")
			}
			if !away {
				s.goAway()
				synctest.Wait()
			}
		}

		// It lists its own copies as well.
		list, err := c.List(t.Context(), support, wire.TemplateListQuery{})
		if err != nil || list.Total != 1 || list.Items[0].Name != "support/greet" {
			t.Errorf("the list has %+v, %v", list, err)
		}
		equal(t, "unknown, below the prefix", fetch(t, c, support, "support/none"), "unavailable")
		equal(t, "unknown, elsewhere", fetch(t, c, support, "hr/none"), "not_found")
	})

	scene(t, "what does not exist for one key exists for others", func(t *testing.T, s *server, dir string) {
		s.publish(t, says("hr/salary", "hush"))
		c := start(t, dir, s)
		synctest.Wait()
		equal(t, "by its id, not cached", fetch(t, c, support, "1"), "not_found")
		equal(t, "for another key", fetch(t, c, ann, "1"), "hush")

		// The copy of another key is outdated, and stays when the key asks for it.
		s.set(func() { s.deaf = true })
		c.stop()
		s.publish(t, says("hr/salary", "two"))
		c = start(t, dir, s)
		equal(t, "again", fetch(t, c, support, "1"), "not_found")
		s.goAway()
		synctest.Wait()
		equal(t, "and for the other", fetch(t, c, ann, "1"), "hush")
	})

	scene(t, "a question of one key does not answer another", func(t *testing.T, s *server, dir string) {
		s.publish(t, says("hr/salary", "hush"))
		c := start(t, dir, s)
		synctest.Wait()
		s.set(func() { s.hold = time.Second / 2 })
		hidden := make(chan string, 1)
		go func() { hidden <- fetch(t, c, support, "1") }()
		synctest.Wait() // it is on its way
		equal(t, "for the key that may", fetch(t, c, ann, "1"), "hush")
		equal(t, "for the other", <-hidden, "not_found")
	})

	scene(t, "a key with a prefix may be the only one", func(t *testing.T, s *server, dir string) {
		s.publish(t, says("support/greet", "hello"))
		c := startAs(t, dir, s, wire.Identity{})
		equal(t, "first", fetch(t, c, support, "support/greet"), "hello")
		synctest.Wait()
		s.publish(t, says("support/greet", "hello again"))
		synctest.Wait()
		equal(t, "it is followed", fetch(t, c, support, "support/greet"), "hello again")
	})

	scene(t, "a feed with a prefix takes no copies of others away", func(t *testing.T, s *server, dir string) {
		s.publish(t, says("support/greet", "hello"))
		s.publish(t, says("hr/salary", "hush"))
		c := start(t, dir, s)
		synctest.Wait()
		for _, ident := range []string{"support/greet", "hr/salary", "2"} {
			fetch(t, c, ann, ident)
		}
		c.stop()
		c = startAs(t, dir, s, support)
		synctest.Wait()

		asked := s.questions()
		s.publish(t, says("support/greet", "hello again"))
		synctest.Wait()
		s.publish(t, says("hr/salary", "hush again"))
		synctest.Wait()
		equal(t, "fetched again when it changed", fetch(t, c, support, "support/greet"), "hello again")
		equal(t, "questions, none in vain", s.questions(), asked+1)
		s.goAway()
		synctest.Wait()
		equal(t, "the last copy", fetch(t, c, ann, "hr/salary"), "hush")
		equal(t, "by its id", fetch(t, c, ann, "2"), "hush")
	})
}
