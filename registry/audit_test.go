package registry_test

import (
	"context"
	"strings"
	"testing"

	"promptspool/api/wire"
	"promptspool/registry"
)

// auditLog keeps what was noted.
type auditLog struct{ entries []string }

func (l *auditLog) Audit(_ context.Context, _ string, e wire.AuditEntry) error {
	l.entries = append(l.entries, strings.Join([]string{e.Actor, e.Action, e.Target, e.Detail}, " | "))

	return nil
}

// A log of changes that were none would hide the one that is looked for.
func TestTheAuditLogHasChangesByNameAndNothingElse(t *testing.T) {
	log := &auditLog{}
	r := registry.New(registry.Config{Logger: quiet, Store: newStore(), Audit: log})
	first := says("greet", "one")
	first.Labels, first.CommitMessage = []string{"prod"}, "begin"
	second := says("greet", "two")
	moved := second
	moved.Labels, moved.Tags = []string{"prod"}, []string{"a", "b"}
	third, fourth := says("greet", "three"), says("greet", "four")
	third.Labels, third.Tags = []string{"prod"}, []string{"c"}
	var label wire.PlacedLabel
	place := func(version int) func() error {
		return func() (err error) {
			label, err = r.CreateLabel(t.Context(), ann, "greet", wire.LabelWrite{Name: "test", Version: version}, "")
			return err
		}
	}
	move := func() error {
		_, err := r.MoveLabel(t.Context(), ann, label.ID, 1, "eve@example.com")
		return err
	}
	post := func(p wire.Publish) func() error {
		return func() error {
			_, err := r.Publish(t.Context(), ann, p)
			return err
		}
	}
	restore := func() error { return r.Restore(t.Context(), ann, "greet", "eve@example.com") }

	for _, step := range []struct {
		what string
		do   func() error
		want []string
	}{
		{"a version", post(first), []string{"key k1 | save template | greet | version 1, prod: begin"}},
		{"the same", post(first), nil},
		{"another", post(second), []string{"key k1 | save template | greet | version 2"}},
		{"the same with a label and tags", post(moved), []string{
			"key k1 | set tags | greet | a, b", "key k1 | move label | greet | prod to version 2 (was 1)",
		}},
		{"the same again", post(moved), nil},
		{"a label", place(2), []string{"key k1 | move label | greet | test to version 2"}},
		{"the same label", place(2), nil},
		{"its move", move, []string{"eve@example.com | move label | greet | test to version 1 (was 2)"}},
		{"the same move", move, nil},
		{"its deletion", func() error { return r.DeleteLabel(t.Context(), ann, label.ID, "") },
			[]string{"key k1 | delete label | greet | test (was 1)"}},
		{"archiving", func() error { return r.Archive(t.Context(), ann, "greet", "") },
			[]string{"key k1 | archive template | greet | "}},
		{"restoring", restore, []string{"eve@example.com | restore template | greet | "}},
		{"restoring again", restore, nil},
		{"a version that moves a label, with tags", post(third), []string{
			"key k1 | save template | greet | version 3, prod (was 2)", "key k1 | set tags | greet | c",
		}},
		{"archiving again", func() error { return r.Archive(t.Context(), ann, "greet", "") },
			[]string{"key k1 | archive template | greet | "}},
		{"a version of what is archived", post(fourth), []string{
			"key k1 | restore template | greet | ", "key k1 | save template | greet | version 4",
		}},
	} {
		log.entries = nil
		if err := step.do(); err != nil {
			t.Errorf("%s: %v", step.what, err)
		}
		equal(t, step.what, log.entries, step.want)
	}
}
