package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"promptspool/api/wire"
	"promptspool/registry/render"
)

// expand fills in the snippets of a blueprint. It returns wire.CodeInvalid for a snippet
// that does not exist, or for a cycle.
func (r *Registry) expand(
	ctx context.Context, account, name string, blueprint []byte,
) (render.Expanded, error) {
	return render.Expand(name, blueprint, func(s render.Snippet) (render.ResolvedSnippet, error) {
		resolved, head, err := r.resolveSnippet(ctx, account, s)
		// A 404 would mean that the template itself does not exist.
		if wire.IsCode(err, wire.CodeNotFound) {
			err = wire.Invalid(missingSnippet(s, head))
		}

		return resolved, err
	})
}

// resolveSnippet finds the version that a reference means. The head is the zero one if
// there is no such template.
func (r *Registry) resolveSnippet(
	ctx context.Context, account string, s render.Snippet,
) (render.ResolvedSnippet, wire.Template, error) {
	head, err := r.head(ctx, wire.Identity{Account: account}, s.Name)
	if err != nil {
		return render.ResolvedSnippet{}, head, err
	}
	selector := wire.Selector{Version: s.Version, Label: s.Label}
	number, ok := head.Resolve(selector)
	if !ok {
		return render.ResolvedSnippet{}, head, notSelected(&head, selector)
	}

	v, err := r.version(ctx, account, &head, number)

	return render.ResolvedSnippet{Name: head.Name, Version: number, Blueprint: v.Blueprint}, head, err
}

// missingSnippet reports why a reference leads nowhere. The head is the zero one if there is
// no such template.
func missingSnippet(s render.Snippet, head wire.Template) wire.FieldError {
	why := fmt.Sprintf("the latest version of %s is %d", quote(s.Name), head.Latest())
	switch {
	case head.Name == "" || head.DeletedAt != nil:
		why = "there is no template " + quote(s.Name)
	case s.Label != "":
		why = fmt.Sprintf("%s has no label %s", quote(s.Name), quote(s.Label))
	}

	return wire.FieldError{Field: "snippet " + s.String(), Reason: "does not exist: " + why}
}

// snippets returns the names of the templates that the latest version of another one, which is
// not deleted, has as snippets.
func snippets(heads []wire.Template) map[string]bool {
	names := map[string]bool{}
	for _, head := range heads {
		if head.DeletedAt != nil {
			continue
		}
		for _, name := range head.Snippets {
			names[name] = true
		}
	}

	return names
}

// snippetNames returns the templates that a blueprint of a template refers to, each once; not
// nil.
func snippetNames(template string, blueprint []byte) []string {
	names := []string{}
	for _, s := range render.Snippets(blueprint) {
		if s.Name != template && !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}

	return names
}

// usersMax bounds the templates that checkUnused names.
const usersMax = 5

// users names templates whose latest or labelled versions use a template as a snippet.
// With a label, only those that refer to it by that label count.
//
// It reads all templates of the account: archiving and deleting are rare.
func (r *Registry) users(ctx context.Context, account, name, label string) ([]string, error) {
	heads, err := r.store.Templates(ctx, account)
	if err != nil {
		return nil, err
	}

	var users []string
	for _, head := range heads {
		// A template does not keep itself in use.
		if head.Name == name || head.DeletedAt != nil {
			continue
		}
		uses, err := r.uses(ctx, account, &head, name, label)
		if err != nil {
			return nil, err
		}
		if !uses {
			continue
		}
		users = append(users, head.Name)
		if len(users) == usersMax {
			break
		}
	}
	return users, nil
}

// uses reports whether a version of the template that apps may fetch refers to a snippet.
func (r *Registry) uses(
	ctx context.Context, account string, head *wire.Template, name, label string,
) (bool, error) {
	numbers := map[int]bool{head.Latest(): true}
	for _, l := range head.Labels {
		numbers[l.Version] = true
	}

	// Older versions may refer to it too, but nothing is served from them by default.
	for number := range numbers {
		v, err := r.version(ctx, account, head, number)
		if err != nil {
			return false, err
		}
		if refers(v.Blueprint, name, label) {
			return true, nil
		}
	}

	return false, nil
}

func refers(blueprint []byte, name, label string) bool {
	for _, s := range render.Snippets(blueprint) {
		if s.Name == name && (label == "" || s.Label == label) {
			return true
		}
	}
	return false
}

// checkUnused returns wire.CodeConflict if other templates use the template, or its
// label, as a snippet.
func (r *Registry) checkUnused(ctx context.Context, id wire.Identity, name, label string) error {
	users, err := r.users(ctx, id.Account, name, label)
	if err != nil || users == nil {
		return err
	}

	for i := range users {
		users[i] = visibleName(id, users[i])
	}
	subject := quote(name)
	if label != "" {
		subject = "the label " + quote(label) + " of " + subject
	}

	return wire.Errorf(wire.CodeConflict, "%s is used as a snippet by %s. Publish those without it first.",
		subject, strings.Join(users, ", "))
}

// visibleName returns the name of a template as a message to an identity has it.
func visibleName(id wire.Identity, name string) string {
	if !id.Sees(name) {
		return "a template that this key may not see"
	}
	return quote(name)
}
