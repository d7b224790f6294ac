//go:build !race

package registry_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"promptspool/api/admission"
	"promptspool/api/wire"
)

// Large templates take room to be parsed and rendered, and wait for it. Small ones are
// served in any case.
func TestLargeTemplatesAreServedWhenThereIsRoom(t *testing.T) {
	scene(t, "room", func(t *testing.T, s *server, dir string) {
		s.publish(t, says("small", "hello"))
		s.publish(t, says("tags", strings.Repeat("{v}", 30<<10))) // large once it is parsed
		s.publish(t, says("large", strings.Repeat("x", 1<<20)))
		c := start(t, dir, s)
		claim := c.room.Claim(true)
		ctx := admission.WithRoom(t.Context(), &claim)

		fetches := map[string]func(name string) error{
			"fetching": func(name string) error {
				_, err := c.Fetch(ctx, ann, name, wire.TemplateFetch{})
				return err
			},
			"reading": func(name string) error {
				_, err := c.Raw(ctx, ann, name, latest)
				return err
			},
		}
		for action, fetch := range fetches {
			for name, large := range map[string]bool{"small": false, "tags": action == "fetching", "large": true} {
				others := c.room.Claim(false)
				if err := admission.TakeRoom(admission.WithRoom(context.Background(), &others), 16<<20); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				time.AfterFunc(time.Second, others.Release)

				err := fetch(name)
				waited := time.Since(began) > 0
				if err != nil || waited != large || claim.Holds() != large {
					t.Errorf("%s %s: it waited %v and holds room %v, want %v; %v",
						action, name, waited, claim.Holds(), large, err)
				}
				claim.Release()
				<-time.After(2 * time.Second) // all is free again
			}
		}
	})
}

// A page of the held templates takes room as well: it is as large as they are.
func TestAPageOfTheTemplatesThatAreHeldTakesRoom(t *testing.T) {
	scene(t, "room", func(t *testing.T, s *server, dir string) {
		s.publish(t, says("small", "hello"))
		c := start(t, dir, s)
		c.fetched(t, "small", latest)
		list := func() (*admission.RoomClaim, error) {
			claim := c.room.Claim(true)
			_, err := c.List(admission.WithRoom(t.Context(), &claim), ann, wire.TemplateListQuery{})

			return &claim, err
		}

		s.goAway()
		if claim, err := list(); err != nil || claim.Holds() {
			t.Errorf("a small page holds room: %v; %v", claim.Holds(), err)
		}

		s.comeBack()
		s.publish(t, says("large", strings.Repeat("x", 1<<20)))
		c.fetched(t, "large", latest)
		s.goAway()
		claim, err := list()
		if err != nil || !claim.Holds() {
			t.Errorf("a large page holds room: %v; %v", claim.Holds(), err)
		}
		claim.Release()

		s.comeBack()
		for _, name := range []string{"larger", "largest"} { // more than a call may take
			s.publish(t, says(name, strings.Repeat("x", 6<<20)))
			c.fetched(t, name, latest)
		}
		s.goAway()
		if claim, err := list(); !wire.IsCode(err, wire.CodeTooLarge) || claim.Holds() {
			t.Errorf("a page that is too large: %v", err)
		}
	})
}
