package registry_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"promptspool/api/wire"
)

func TestPreloadedTemplatesAreThereWhenTheServerGoesAway(t *testing.T) {
	scene(t, "by label and by name", func(t *testing.T, s *server, dir string) {
		for _, name := range []string{"a", "b", "c"} {
			p := says(name, name+" one")
			if name != "c" {
				p.Labels = []string{"prod"}
			}
			s.publish(t, p)
			s.publish(t, says(name, name+" two"))
		}

		c := start(t, dir, s)
		if err := c.Preload(t.Context(), ann, []string{"label:prod", "c"}); err != nil {
			t.Fatal(err)
		}
		err := c.Preload(t.Context(), ann, []string{"nosuch", "c@label:prod"})
		wantFault(t, err, wire.CodeNotFound, "nosuch", "c@label:prod")

		s.goAway()
		for name, sel := range map[string]wire.Selector{"a": {Label: "prod"}, "b": {Label: "prod"}, "c": {}} {
			if got, err := c.Raw(t.Context(), ann, name, sel); err != nil {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}

		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := c.Preload(ctx, ann, []string{"b"}); err == nil {
			t.Error("a template that was never fetched was preloaded while the server is away")
		}
	})
}

func TestCopies(t *testing.T) {
	scene(t, "a copy follows the snippets in it", func(t *testing.T, s *server, dir string) {
		s.publish(t, says("tone", "kind"))
		s.publish(t, says("greet", "be @@@tone@@@"))
		c := start(t, dir, s)
		for _, sel := range []wire.Selector{{}, {Version: 1}} {
			if got, err := c.Raw(t.Context(), ann, "greet", sel); err != nil || text(got.Blueprint) != "be kind" {
				t.Fatalf("%+v: %q, %v", sel, text(got.Blueprint), err)
			}
		}
		s.publish(t, says("tone", "brief"))
		synctest.Wait()
		for _, sel := range []wire.Selector{{}, {Version: 1}} {
			if got, err := c.Raw(t.Context(), ann, "greet", sel); err != nil || text(got.Blueprint) != "be brief" {
				t.Errorf("after the snippet changed, %+v: %q, %v", sel, text(got.Blueprint), err)
			}
		}
	})

	scene(t, "a copy that changed is fetched before it is asked for", func(t *testing.T, s *server, dir string) {
		c := startGreeting(t, dir, s)
		s.release(t, "two")
		s.goAway()
		synctest.Wait()
		if got := c.fetched(t, "greet", latest); got != "two stale" {
			t.Errorf("the server reported a new version and went away; then the sidecar serves %q", got)
		}
	})

	scene(t, "a copy does not stay old because the feed alone is broken", func(t *testing.T, s *server, dir string) {
		c := startGreeting(t, dir, s)
		s.set(func() { s.deaf = true })
		s.publish(t, says("greet", "two"))
		<-time.After(2 * time.Minute) // of virtual time
		c.fetched(t, "greet", latest)
		synctest.Wait()
		if got := c.fetched(t, "greet", latest); got != "two stale" {
			t.Errorf("after two minutes without the feed the sidecar serves %q", got)
		}
	})

	scene(t, "labels and versions resolve among the copies", func(t *testing.T, s *server, dir string) {
		one, two := says("greet", "one"), says("greet", "two")
		one.Labels, two.Labels = []string{"old"}, []string{"prod", "stage"}
		s.publish(t, one)
		s.publish(t, two)

		c := start(t, dir, s)
		synctest.Wait()
		equal(t, "latest", c.fetched(t, "greet", latest), "two miss")
		for _, sel := range []wire.Selector{{Label: "prod"}, {Label: "stage"}, {Version: 2}} {
			if got := c.fetched(t, "greet", sel); got != "two hit" {
				t.Errorf("%+v while the server is there: %s", sel, got)
			}
		}
		equal(t, "another version", c.fetched(t, "greet", wire.Selector{Label: "old"}), "one miss")
		equal(t, "questions", s.questions(), 2)

		stage := wire.LabelWrite{Name: "stage", Version: 1}
		if _, err := s.registry().CreateLabel(t.Context(), ann, "greet", stage, ""); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		equal(t, "the label moved", c.fetched(t, "greet", wire.Selector{Label: "stage"}), "one hit")

		s.goAway()
		synctest.Wait()
		for sel, want := range map[wire.Selector]string{
			{Label: "prod"}: "two stale", {Label: "stage"}: "one stale", {Version: 1}: "one hit",
			{Version: 3}: "unavailable", {Label: "nosuch"}: "unavailable",
		} {
			if got := c.fetched(t, "greet", sel); got != want {
				t.Errorf("%+v while the server is away: %s, want %s", sel, got, want)
			}
		}
	})
}
