package registry

import (
	"context"
	"fmt"
	"strings"

	"promptspool/api/wire"
	"promptspool/registry/render"
)

// expand puts the texts of snippets into a blueprint. Its errors are wire.CodeInvalid: a snippet that does not exist, a circle.
func (r *Registry) expand(ctx context.Context, account, name string, blueprint []byte) (render.Expanded, error) {
	return render.Expand(name, blueprint, func(s render.Snippet) (render.ResolvedSnippet, error) {
		head, err := r.head(ctx, account, s.Name)
		if err == nil {
			if number, ok := head.Resolve(wire.Selector{Version: s.Version, Label: s.Label}); ok {
				v, err := r.version(ctx, account, &head, number)
				return render.ResolvedSnippet{Name: head.Name, Version: number, Blueprint: v.Blueprint}, err
			}
			err = notSelected(&head, wire.Selector{Version: s.Version, Label: s.Label})
		}
		if wire.IsCode(err, wire.CodeNotFound) {
			err = wire.Invalid(wire.FieldError{Field: "snippet " + s.String(), Reason: missing(s, head)})
		}
		return render.ResolvedSnippet{}, err
	})
}

// usedSnippets are those of a blueprint, as a template's answer lists them.
func usedSnippets(x render.Expanded) []wire.UsedSnippet {
	snippets := make([]wire.UsedSnippet, len(x.Used))
	for i, u := range x.Used {
		snippets[i] = wire.UsedSnippet(u)
	}
	return snippets
}

// missing is why a reference leads nowhere. The head is the zero one if there is no such template.
func missing(s render.Snippet, head wire.Template) string {
	switch {
	case head.Name == "" || head.DeletedAt != nil:
		return "does not exist: there is no template " + quote(s.Name)
	case s.Label != "":
		return fmt.Sprintf("does not exist: %s has no label %s", quote(s.Name), quote(s.Label))
	}
	return fmt.Sprintf("does not exist: the latest version of %s is %d", quote(s.Name), head.Latest())
}

// usersMax is how many templates a refusal names.
const usersMax = 5

// users names the templates whose latest or labelled versions refer to a template: with a label, only those that refer to it by
// that. It reads all of the account's, for what changes rarely.
func (r *Registry) users(ctx context.Context, account, name, label string) ([]string, error) {
	heads, _, err := r.store.Templates(ctx, account, wire.TemplateListQuery{Page: 1, PerPage: 1 << 30})
	if err != nil {
		return nil, err
	}
	var users []string
	for _, head := range heads {
		numbers := map[int]bool{head.Latest(): true}
		for _, l := range head.Labels {
			numbers[l.Version] = true
		}
		for number := range numbers {
			v, err := r.version(ctx, account, &head, number)
			if err != nil {
				return nil, err
			}
			if head.Name != name && refers(v.Blueprint, name, label) {
				users = append(users, head.Name)
				break
			}
		}
		if len(users) == usersMax {
			break
		}
	}
	return users, nil
}

func refers(blueprint []byte, name, label string) bool {
	for _, s := range render.Snippets(blueprint) {
		if s.Name == name && (label == "" || s.Label == label) {
			return true
		}
	}
	return false
}

// unused refuses to take away what other templates refer to.
func (r *Registry) unused(ctx context.Context, account, name, label string) error {
	users, err := r.users(ctx, account, name, label)
	if err != nil || users == nil {
		return err
	}
	for i := range users {
		users[i] = quote(users[i])
	}
	what := quote(name)
	if label != "" {
		what = "the label " + quote(label) + " of " + what
	}
	return wire.Errorf(wire.CodeConflict, "%s stands as a snippet in %s. Publish them without it first.", what, strings.Join(users, ", "))
}
