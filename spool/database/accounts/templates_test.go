package accounts_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"promptspool/api/wire"
	"promptspool/registry"
	"promptspool/spool/database/accounts"
)

// moment is when the scenes take place: whole milliseconds, in UTC.
var moment = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// publish adds a version without going through a Registry.
func publish(t *testing.T, s *accounts.Store, account, name, text string) wire.Template {
	t.Helper()
	return update(t, s, account, name, func(*wire.Template) *wire.Version { return version(text) })
}

// update changes a head, and adds the version that change returns, if any.
func update(
	t *testing.T, s *accounts.Store, account, name string, change func(head *wire.Template) *wire.Version,
) wire.Template {
	t.Helper()
	changed := func(head *wire.Template) (*wire.Version, bool, error) { return change(head), true, nil }
	head, err := s.UpdateTemplate(context.Background(), account, name, changed)
	if err != nil {
		t.Fatalf("update %s: %v", name, err)
	}

	return head
}

func version(text string) *wire.Version {
	return &wire.Version{
		Blueprint:     []byte(`{"type":"completion","content":[{"type":"text","text":"` + text + `"}]}`),
		Metadata:      []byte(`{"n":1.50}`),
		CommitMessage: "says " + text,
		CreatedAt:     moment,
	}
}

func template(t *testing.T, s *accounts.Store, account, ident string) wire.Template {
	t.Helper()
	head, err := s.Template(context.Background(), account, ident)
	if err != nil {
		t.Fatalf("template %q: %v", ident, err)
	}

	return head
}

func changesSince(t *testing.T, s *accounts.Store, account string, since uint64) wire.Changes {
	t.Helper()
	c, err := s.TemplateChanges(context.Background(), account, since)
	if err != nil {
		t.Fatalf("changes since %d: %v", since, err)
	}
	c.Success = true // a store need not set it

	return c
}

// equal compares two values. An empty list equals nil.
func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func TestATemplateIsFoundByNameAndByIdEachVersionByItsNumber(t *testing.T) {
	s := open()
	publish(t, s, "acme", "greet", "one")
	publish(t, s, "acme", "other", "else")
	publish(t, s, "acme", "greet", "two")

	byName := template(t, s, "acme", "greet")
	equal(t, "by id", template(t, s, "acme", fmt.Sprint(byName.ID)), byName)
	equal(t, "latest", byName.Latest(), 2)
	stamp := byName.Versions[1]
	equal(t, "stamp", stamp, wire.Stamp{ID: stamp.ID, At: moment, Message: "says two"})
	if template(t, s, "acme", "other").ID == byName.ID {
		t.Fatal("two templates have one id")
	}

	for i, text := range []string{"one", "two"} {
		got, err := s.TemplateVersion(context.Background(), "acme", byName.ID, i+1)
		if err != nil {
			t.Fatal(err)
		}
		want := *version(text)
		want.ID, want.TemplateID, want.Number = byName.Versions[i].ID, byName.ID, i+1
		equal(t, "version", got, want)
	}
	if byName.Versions[0].ID == byName.Versions[1].ID {
		t.Fatal("two versions have one id")
	}
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	s := open()
	head := publish(t, s, "acme", "greet", "one")
	ctx := context.Background()

	for _, ident := range []string{
		"", "gree", "greet2", "GREET", "0", "-1", "99", "99999999999999999999", "1.0", "+1", "01",
	} {
		if _, err := s.Template(ctx, "acme", ident); !wire.IsCode(err, wire.CodeNotFound) {
			t.Errorf("template %q: error %v, want not_found", ident, err)
		}
	}
	for _, number := range []int{-1, 0, 2, math.MaxInt32} {
		if _, err := s.TemplateVersion(ctx, "acme", head.ID, number); !wire.IsCode(err, wire.CodeNotFound) {
			t.Errorf("version %d: error %v, want not_found", number, err)
		}
	}
	if _, err := s.TemplateVersion(ctx, "acme", head.ID+1, 1); !wire.IsCode(err, wire.CodeNotFound) {
		t.Errorf("version of no template: error %v, want not_found", err)
	}
}

func TestAChangeThatIsUnchangedOrFailsWritesNothing(t *testing.T) {
	s := open()
	ctx := context.Background()
	unchanged := func(*wire.Template) (*wire.Version, bool, error) { return nil, false, nil }
	refused := errors.New("refused")
	fails := func(*wire.Template) (*wire.Version, bool, error) { return version("never"), true, refused }

	if _, err := s.UpdateTemplate(ctx, "acme", "greet", fails); err != refused {
		t.Fatalf("error %v, want the one that change returned", err)
	}
	if _, err := s.UpdateTemplate(ctx, "acme", "greet", unchanged); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Template(ctx, "acme", "greet"); !wire.IsCode(err, wire.CodeNotFound) {
		t.Fatalf("error %v, want not_found", err)
	}
	none := wire.Changes{Success: true, Names: []string{}}
	equal(t, "revision of nothing", changesSince(t, s, "acme", 0), none)

	before := publish(t, s, "acme", "greet", "one")
	look := func(head *wire.Template) (*wire.Version, bool, error) {
		equal(t, "head given to change", *head, before)
		return nil, false, nil
	}
	after, err := s.UpdateTemplate(ctx, "acme", "greet", look)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "head returned", after, before)
	equal(t, "head stored", template(t, s, "acme", "greet"), before)
}

func TestTheHeadThatIsReturnedIsTheOneThatIsStored(t *testing.T) {
	s := open()
	got := update(t, s, "acme", "greet", func(head *wire.Template) *wire.Version {
		if head.Name != "greet" || head.ID < 1 || head.Latest() != 0 {
			t.Errorf("new head %+v, want name and id only", head)
		}
		head.Tags, head.CreatedAt, head.UpdatedAt = []string{"a", "b"}, moment, moment
		head.Labels = []wire.Label{{Name: "prod", Version: 1}}

		return version("one")
	})
	equal(t, "head", template(t, s, "acme", "greet"), got)
	equal(t, "head's tags", got.Tags, []string{"a", "b"})
	equal(t, "revision", got.Revision, uint64(1))

	got.Tags[0] = "changed by the caller"
	equal(t, "stored tags", template(t, s, "acme", "greet").Tags, []string{"a", "b"})
}

func TestLabelsAndTheirHistoryAreKept(t *testing.T) {
	s := open()
	publish(t, s, "acme", "greet", "one")
	publish(t, s, "acme", "greet", "two")
	for i, version := range []int{1, 2, 1} {
		at := moment.Add(time.Duration(i) * time.Hour)
		update(t, s, "acme", "greet", func(head *wire.Template) *wire.Version {
			head.Labels = []wire.Label{{Name: "prod", Version: version}}
			head.Moves = append(head.Moves, wire.Move{Label: "prod", Version: version, At: at})
			return nil
		})
	}

	head := template(t, s, "acme", "greet")
	equal(t, "versions", head.Latest(), 2)
	for i, want := range []int{0, 1, 2, 1} {
		at := moment.Add(time.Duration(i)*time.Hour - time.Minute)
		got, _ := head.ResolveAt(wire.Selector{Label: "prod"}, at)
		equal(t, fmt.Sprintf("prod in hour %d", i), got, want)
	}
	now, ok := head.Resolve(wire.Selector{Label: "prod"})
	equal(t, "prod now", now, 1)
	equal(t, "prod is there", ok, true)
}

func TestNamesMayContainSlashesSpacesAndAnyLetter(t *testing.T) {
	s := open()
	all := []string{"a", "a/b", "a/b/c", "a b", "ü/猫", "a:b", "a%2Fb", "%", "_", "A", "x\u2028y"}
	for _, name := range all {
		publish(t, s, "acme", name, "x")
	}

	for i, name := range all {
		head := template(t, s, "acme", name)
		equal(t, "name", head.Name, name)
		equal(t, "id of "+name, head.ID, int64(i+1))
	}
	equal(t, "total", len(listed(t, s, wire.TemplateListQuery{})), len(all))
}

func TestANameThatLooksLikeANumberWinsOverAnId(t *testing.T) {
	s := open()
	first := publish(t, s, "acme", "greet", "one")
	id := fmt.Sprint(first.ID)
	equal(t, "before", template(t, s, "acme", id).Name, "greet")

	publish(t, s, "acme", id, "two")
	equal(t, "after", template(t, s, "acme", id).Name, id)
	equal(t, "by its own name", template(t, s, "acme", "greet").ID, first.ID)
}

func TestFiftyConcurrentPublishersLeaveNoGap(t *testing.T) {
	s := open()
	const publishers = 50
	var wg sync.WaitGroup
	for i := range publishers {
		wg.Go(func() {
			change := func(head *wire.Template) (*wire.Version, bool, error) {
				head.Labels = []wire.Label{{Name: "newest", Version: head.Latest() + 1}}
				return version(fmt.Sprint(i)), true, nil
			}
			if _, err := s.UpdateTemplate(context.Background(), "acme", "greet", change); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()

	head := template(t, s, "acme", "greet")
	equal(t, "versions", head.Latest(), publishers)
	equal(t, "label", head.Labels[0].Version, publishers)
	equal(t, "revision", head.Revision, uint64(publishers))

	texts, ids := map[string]bool{}, map[int64]bool{}
	for i, stamp := range head.Versions {
		v, err := s.TemplateVersion(context.Background(), "acme", head.ID, i+1)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "version's id", v.ID, stamp.ID)
		texts[string(v.Blueprint)], ids[v.ID] = true, true
	}
	equal(t, "different texts and ids", []int{len(texts), len(ids)}, []int{publishers, publishers})
}

func TestAccountsDoNotSeeEachOther(t *testing.T) {
	s := open()
	ctx := context.Background()

	// "acme" is a prefix of "acmed", but keys of one account must not be a prefix of the
	// other's.
	publish(t, s, "acme", "greet", "acme")
	publish(t, s, "acmed", "greet", "acmed")
	publish(t, s, "acmed", "dgreet", "acmed")
	publish(t, s, "acmed", "greet", "again")

	for account, latest := range map[string]int{"acme": 1, "acmed": 2} {
		head := template(t, s, account, "greet")
		equal(t, account+" latest", head.Latest(), latest)
		equal(t, account+" id counts by account", head.ID, int64(1))
		v, err := s.TemplateVersion(ctx, account, head.ID, 1)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, account+" text", string(v.Blueprint), string(version(account).Blueprint))
	}

	if _, err := s.Template(ctx, "acme", "dgreet"); !wire.IsCode(err, wire.CodeNotFound) {
		t.Fatalf("another's template: error %v, want not_found", err)
	}
	if _, err := s.TemplateVersion(ctx, "acme", 1, 2); !wire.IsCode(err, wire.CodeNotFound) {
		t.Fatalf("another's version: error %v, want not_found", err)
	}
	published := wire.Changes{Success: true, Revision: 1, Names: []string{"greet"}}
	equal(t, "changes", changesSince(t, s, "acme", 0), published)
	equal(t, "listed", len(listed(t, s, wire.TemplateListQuery{})), 1)
}

// listed returns the heads of the account acme that a query matches.
func listed(t *testing.T, s *accounts.Store, q wire.TemplateListQuery) []wire.Template {
	t.Helper()
	heads, err := s.Templates(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}

	return slices.DeleteFunc(heads, func(head wire.Template) bool { return !q.Match(&head) })
}

func namesOf(heads []wire.Template) (names []string) {
	for _, head := range heads {
		names = append(names, head.Name)
	}
	return names
}

func TestADeletedTemplateIsInNoListAndItsChangeIsReported(t *testing.T) {
	s := open()
	publish(t, s, "acme", "greet", "one")
	update(t, s, "acme", "greet", func(head *wire.Template) *wire.Version {
		head.DeletedAt = &moment
		return nil
	})

	equal(t, "listed", len(listed(t, s, wire.TemplateListQuery{})), 0)
	equal(t, "deleted at", *template(t, s, "acme", "greet").DeletedAt, moment)
	gone := wire.Changes{Success: true, Revision: 2, Names: []string{"greet"}}
	equal(t, "changes", changesSince(t, s, "acme", 1), gone)
}

func TestChangesAreReportedOnceFromAnyRevisionOn(t *testing.T) {
	s := open()
	for _, name := range []string{"a", "b", "c", "a"} {
		publish(t, s, "acme", name, "x")
	}

	for since, want := range map[uint64]wire.Changes{
		0:              {Success: true, Revision: 4, Names: []string{"b", "c", "a"}},
		1:              {Success: true, Revision: 4, Names: []string{"b", "c", "a"}},
		2:              {Success: true, Revision: 4, Names: []string{"c", "a"}},
		3:              {Success: true, Revision: 4, Names: []string{"a"}},
		4:              {Success: true, Revision: 4, Names: []string{}},
		5:              {Success: true, Revision: 4, Reset: true, Names: []string{}},
		math.MaxUint64: {Success: true, Revision: 4, Reset: true, Names: []string{}},
	} {
		equal(t, fmt.Sprintf("changes since %d", since), changesSince(t, s, "acme", since), want)
	}
}

func TestChangesComeInPagesNoneTwiceAndNoneMissing(t *testing.T) {
	s := open()
	const templates = registry.ChangesNamesMax + 5
	for i := range templates {
		publish(t, s, "acme", fmt.Sprintf("t%04d", i), "x")
	}

	first := changesSince(t, s, "acme", 0)
	equal(t, "first page", len(first.Names), registry.ChangesNamesMax)
	equal(t, "its revision is that of its last name", first.Revision, uint64(registry.ChangesNamesMax))

	second := changesSince(t, s, "acme", first.Revision)
	equal(t, "second page", second.Names, []string{"t1000", "t1001", "t1002", "t1003", "t1004"})
	equal(t, "its revision is the current one", second.Revision, uint64(templates))
}

func TestAnIdLeadsToItsNameWithinTheAccount(t *testing.T) {
	s := open()
	ctx := context.Background()
	a := publish(t, s, "acme", "greet/en", "x")
	b := publish(t, s, "acme", "2", "x")
	publish(t, s, "others", "theirs", "x")

	for id, want := range map[int64]string{a.ID: "greet/en", b.ID: "2"} {
		if name, err := s.TemplateName(ctx, "acme", id); err != nil || name != want {
			t.Errorf("template %d is %q, %v; want %q", id, name, err, want)
		}
	}
	for account, id := range map[string]int64{"acme": 99, "others": b.ID, "nobody": 1} {
		if name, err := s.TemplateName(ctx, account, id); !wire.IsCode(err, wire.CodeNotFound) {
			t.Errorf("template %d of %s is %q, %v", id, account, name, err)
		}
	}
}

func TestListsArePagedSortedAndNarrowedByEveryField(t *testing.T) {
	s := open()
	for i, name := range []string{"c", "a", "b"} {
		at := moment.Add(time.Duration(i) * time.Hour)
		update(t, s, "acme", name, func(head *wire.Template) *wire.Version {
			head.Tags, head.Labels = []string{"all", name}, []wire.Label{{Name: "of " + name, Version: 1}}
			head.ExternalIDs = []wire.ExternalID{{Source: "cms", ID: name}, {Source: "crm", ID: "7"}}
			head.CreatedAt = at
			head.UpdatedAt = at.Add(-time.Duration(2*i) * time.Hour)
			if name == "b" {
				head.DeletedAt = &at
			}

			v := version("x")
			v.Author = "ann"
			return v
		})
	}

	for _, c := range []struct {
		query wire.TemplateListQuery
		want  string
	}{
		{wire.TemplateListQuery{}, "a c"},
		{wire.TemplateListQuery{Status: "all"}, "a b c"},
		{wire.TemplateListQuery{Status: "deleted"}, "b"},
		{wire.TemplateListQuery{Status: "all", Page: 2, PerPage: 2}, "c"},
		{wire.TemplateListQuery{Page: 2, PerPage: 2}, ""},
		{wire.TemplateListQuery{Name: "C"}, "c"},
		{wire.TemplateListQuery{Label: "of c"}, "c"},
		{wire.TemplateListQuery{Label: "gone"}, ""},
		{wire.TemplateListQuery{Tags: []string{"all", "c"}}, "c"},
		{wire.TemplateListQuery{Tags: []string{"a", "c"}}, ""},
		{wire.TemplateListQuery{Author: "ann"}, "a c"},
		{wire.TemplateListQuery{Author: "bob"}, ""},
		{wire.TemplateListQuery{Source: "cms", ExternalID: "c"}, "c"},
		{wire.TemplateListQuery{Source: "crm", ExternalID: "7", Status: "all"}, "a b c"},
		{wire.TemplateListQuery{Source: "crm", ExternalID: "c"}, ""},
		{wire.TemplateListQuery{CreatedAfter: moment.Add(time.Hour)}, "a"},
		{wire.TemplateListQuery{CreatedBefore: moment}, "c"},
		{wire.TemplateListQuery{UpdatedBefore: moment.Add(-time.Hour)}, "a"},
		{wire.TemplateListQuery{Status: "all", SortOrder: "desc"}, "c b a"},
		{wire.TemplateListQuery{Status: "all", SortBy: "created_at"}, "b a c"},
		{wire.TemplateListQuery{Status: "all", SortBy: "created_at", SortOrder: "asc"}, "c a b"},
		{wire.TemplateListQuery{Status: "all", SortBy: "updated_at"}, "c a b"},
		{wire.TemplateListQuery{Status: "all", SortBy: "id"}, "b a c"},
	} {
		if c.query.PerPage == 0 {
			c.query.PerPage = 10
		}
		page, _ := c.query.PageOf(listed(t, s, c.query))
		if got := strings.Join(namesOf(page), " "); got != c.want {
			t.Errorf("%+v lists %q, want %q", c.query, got, c.want)
		}
	}
}
