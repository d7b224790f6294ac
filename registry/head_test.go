//go:build !race

package registry_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/registry"
)

// full makes a registry with a template that has many versions and moves of its labels:
// "prod" has been at version 1 since the first move, and "next" made all others.
func full(t *testing.T, versions, moves int) *registry.Registry {
	t.Helper()
	store := newStore()
	r := registry.New(registry.Config{Logger: quiet, Store: store})
	publish(t, r, says("greeting", "0"))

	history := func(head *wire.Template) (*wire.Version, bool, error) {
		for len(head.Versions) < versions-1 {
			head.Versions = append(head.Versions, head.Versions[0])
		}
		head.Labels = []wire.Label{
			{ID: wire.LabelID(head.ID, 1), Name: "next", Version: 1},
			{ID: wire.LabelID(head.ID, 2), Name: "prod", Version: 1},
		}

		at := time.Now().Add(-time.Hour)
		head.Moves = []wire.Move{{Label: "prod", Version: 1, At: at}}
		for len(head.Moves) < moves {
			head.Moves = append(head.Moves, wire.Move{Label: "next", Version: 1, At: at})
		}
		return &wire.Version{Blueprint: says("greeting", "last").Blueprint, CreatedAt: time.Now()}, true, nil
	}
	if _, err := store.UpdateTemplate(t.Context(), ann.Account, "greeting", history); err != nil {
		t.Fatal(err)
	}

	return r
}

func TestATemplateHasAMostOfVersions(t *testing.T) {
	r := full(t, 10_000, 1)

	_, err := r.Publish(context.Background(), ann, says("greeting", "one more"))
	if !wire.IsCode(err, wire.CodeConflict) || !strings.Contains(err.Error(), "10000 versions") {
		t.Errorf("publishing one more: %v", err)
	}
}

// The history of labels is bounded, and each label's last move stays in it.
func TestTheHistoryOfLabelsForgetsItsOldestSteps(t *testing.T) {
	r := full(t, 2, 10_000)

	for i := range 3 {
		if _, err := r.MoveLabel(t.Context(), ann, wire.LabelID(1, 1), 2-i%2, "ann"); err != nil {
			t.Fatal(err)
		}
	}
	labels, err := r.Labels(t.Context(), ann, "greeting")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "steps", len(labels.Moves), 10_000)
	equal(t, "the first step", fmt.Sprint(labels.Moves[0].Label, labels.Moves[0].Version), "prod1")
	equal(t, "the last step", labels.Moves[9_999].Label, "next")
}
