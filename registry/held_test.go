package registry_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"promptspool/api/wire"
	"promptspool/registry"
)

// listed returns the names and versions of a page, the total number of templates, and how
// they were found.
func (c *sidecar) listed(t *testing.T, q wire.TemplateListQuery) string {
	t.Helper()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	list, err := c.List(ctx, ann, q)
	if err != nil {
		return string(wire.AsError(err).Code)
	}

	var names []string
	for _, item := range list.Items {
		names = append(names, fmt.Sprintf("%s@%d", item.Name, item.Version))
	}

	return fmt.Sprintf("%s of %d %s", strings.Join(names, " "), list.Total, list.Cache)
}

func TestWithoutTheServerAListTellsTheTemplatesThatAreHeld(t *testing.T) {
	scene(t, "while it cannot be reached", func(t *testing.T, s *server, dir string) {
		for _, name := range []string{"a", "b", "c", "never"} {
			p := says(name, "one")
			p.Tags, p.Labels = []string{"of-" + name}, []string{"prod"}
			s.publish(t, p)
		}
		s.publish(t, says("b", "two"))

		c := start(t, dir, s)
		for _, name := range []string{"a", "b", "c"} {
			c.fetched(t, name, latest)
			c.fetched(t, name, wire.Selector{Label: "prod"})
		}
		synctest.Wait()
		equal(t, "with the server", c.listed(t, wire.TemplateListQuery{}), "a@1 b@2 c@1 never@1 of 4 ")

		s.goAway()
		time.Sleep(time.Minute)
		for _, q := range []struct {
			name  string
			query wire.TemplateListQuery
			want  string
		}{
			{"all", wire.TemplateListQuery{}, "a@1 b@2 c@1 of 3 stale"},
			{"a page", wire.TemplateListQuery{Page: 2, PerPage: 2}, "c@1 of 3 stale"},
			{"behind the last page", wire.TemplateListQuery{Page: 9}, " of 3 stale"},
			{"by name", wire.TemplateListQuery{Name: "B"}, "b@2 of 1 stale"},
			{"by label", wire.TemplateListQuery{Label: "prod"}, "a@1 b@2 c@1 of 3 stale"},
			{"by a label that is not there", wire.TemplateListQuery{Label: "x"}, " of 0 stale"},
			{"by tag", wire.TemplateListQuery{Tags: []string{"of-c"}}, "c@1 of 1 stale"},
			{"sorted", wire.TemplateListQuery{SortBy: "id", SortOrder: "desc"}, "c@1 b@2 a@1 of 3 stale"},
			{"by what is not held", wire.TemplateListQuery{Author: "ann"}, "unavailable"},
			{"by time", wire.TemplateListQuery{CreatedAfter: time.Now()}, "unavailable"},
			{"sorted by time", wire.TemplateListQuery{SortBy: "updated_at"}, "unavailable"},
			{"archived ones", wire.TemplateListQuery{Status: "deleted"}, "unavailable"},
		} {
			equal(t, q.name, c.listed(t, q.query), q.want)
		}

		list, err := c.List(context.Background(), ann, wire.TemplateListQuery{})
		if err != nil || list.Age != time.Minute ||
			text(list.Items[1].Blueprint) != "two" || list.Items[1].Labels[0].Version != 1 {
			t.Errorf("%+v, age %v, error %v", list, list.Age, err)
		}
		other := ann
		other.Account = "other"
		_, err = c.List(context.Background(), other, wire.TemplateListQuery{})
		if !wire.IsCode(err, wire.CodeUnavailable) {
			t.Errorf("another account, of which no copy is held: %v", err)
		}

		c.stop()
		c = start(t, dir, s)
		equal(t, "after a restart", c.listed(t, wire.TemplateListQuery{PerPage: 1}), "a@1 of 3 stale")
		s.comeBack()
		time.Sleep(6 * time.Second)
		equal(t, "when it is back", c.listed(t, wire.TemplateListQuery{}), "a@1 b@2 c@1 never@1 of 4 ")
	})

	for code, want := range map[wire.Code]string{
		wire.CodeInternal: "a@1 of 1 stale", wire.CodeNotImplemented: "a@1 of 1 stale",
		wire.CodeUnavailable: "a@1 of 1 stale",
		wire.CodeForbidden:   "forbidden", wire.CodeInvalid: "invalid",
	} {
		scene(t, "when it answers "+string(code), func(t *testing.T, s *server, dir string) {
			s.publish(t, says("a", "one"))
			c := start(t, dir, s)
			c.fetched(t, "a", latest)
			s.set(func() {
				store := failing{newStore(), wire.Errorf(code, "No.")}
				s.behind = registry.New(registry.Config{Store: store, Logger: quiet})
			})
			equal(t, "the list", c.listed(t, wire.TemplateListQuery{}), want)
		})
	}
}

// failing is a store that fails to list templates.
type failing struct {
	registry.Store
	err error
}

func (f failing) Templates(context.Context, string) ([]wire.Template, error) { return nil, f.err }

// A server that does not answer holds up no list for long.
func TestAListWaitsForTheServerForAMoment(t *testing.T) {
	scene(t, "it hangs", func(t *testing.T, s *server, dir string) {
		s.publish(t, says("a", "one"))
		c := start(t, dir, s)
		c.fetched(t, "a", latest)
		synctest.Wait()

		s.set(func() { s.hang = true })
		asked := time.Now()
		equal(t, "the list", c.listed(t, wire.TemplateListQuery{}), "a@1 of 1 stale")
		if took := time.Since(asked); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}
