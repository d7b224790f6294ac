package accounts_test

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"promptspool/api/wire"
	"promptspool/registry"
	"promptspool/spool/database/accounts"
)

// reverted takes back changes that others follow at the same moment: one of them stays, and is
// never undone unseen.
func TestAChangeIsTakenBackOnceAndNotOverAnotherOne(t *testing.T) {
	s := open()
	r := registry.New(registry.Config{Store: s, Logger: slog.New(slog.DiscardHandler)})
	id, ctx := wire.Identity{Account: "acme", KeyID: "key_1"}, t.Context()
	for _, text := range []string{"one", "two", "three"} {
		publish(t, s, id.Account, "greet", text)
	}
	point := func(version int) (wire.PlacedLabel, error) {
		return r.CreateLabel(ctx, id, "greet", wire.LabelWrite{Name: "prod", Version: version}, "")
	}

	_, err := point(1)
	if err != nil {
		t.Fatal(err)
	}
	if moved, err := point(2); err != nil || moved.Was != 1 {
		t.Fatalf("the label was at %d, want 1, %v", moved.Was, err)
	}

	// Eight take it back, while another one moves it again.
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for n := range errs {
		wg.Go(func() { errs[n] = r.RevertLabel(ctx, id, "greet", "prod", 2, 1, fmt.Sprint("p", n)) })
	}
	var pointed error
	wg.Go(func() { _, pointed = point(3) })
	wg.Wait()

	if pointed != nil {
		t.Fatal(pointed)
	}
	done := 0
	for _, err := range errs {
		if err == nil {
			done++
		} else if !wire.IsCode(err, wire.CodeConflict) {
			t.Error(err)
		}
	}
	head, err := s.Template(ctx, id.Account, "greet")
	if err != nil || done > 1 || head.Labels[0].Version != 3 {
		t.Errorf("%d took it back, and the head is %+v, %v", done, head, err)
	}

	// A label that was made is deleted again, and one that was deleted made again.
	for _, step := range []struct{ is, was, labels int }{{3, 0, 0}, {0, 2, 1}} {
		err := r.RevertLabel(ctx, id, "greet", "prod", step.is, step.was, "")
		if head, _ := s.Template(ctx, id.Account, "greet"); err != nil || len(head.Labels) != step.labels {
			t.Errorf("from %d back to %d: %+v, %v", step.is, step.was, head.Labels, err)
		}
	}

	revertedArchive(t, s, r, id)
}

// revertedArchive takes back the first of two archivings.
func revertedArchive(t *testing.T, s *accounts.Store, r *registry.Registry, id wire.Identity) {
	archive := func() wire.Template {
		if err := r.Archive(t.Context(), id, "greet", ""); err != nil {
			t.Fatal(err)
		}
		head, err := s.Template(t.Context(), id.Account, "greet")
		if err != nil || head.DeletedAt == nil {
			t.Fatalf("the archived head is %+v, %v", head, err)
		}
		return head
	}

	first := *archive().DeletedAt
	if err := r.Restore(t.Context(), id, "greet", ""); err != nil {
		t.Fatal(err)
	}
	second := *archive().DeletedAt

	for _, step := range []struct {
		at   string
		err  error
		code wire.Code
	}{
		{"the first", r.RevertArchive(t.Context(), id, "greet", first, ""), wire.CodeConflict},
		{"the second", r.RevertArchive(t.Context(), id, "greet", second, ""), ""},
		{"again", r.RevertArchive(t.Context(), id, "greet", second, ""), wire.CodeConflict},
	} {
		if (step.err != nil || step.code != "") && !wire.IsCode(step.err, step.code) {
			t.Errorf("taking back %s archiving: %v, want %q", step.at, step.err, step.code)
		}
	}
}
