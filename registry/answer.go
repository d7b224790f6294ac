package registry

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"

	"promptspool/api/wire"
	"promptspool/registry/render"
)

// workspaceID fills the field in which clients of the peer read a workspace's number.
// Accounts here have no such number.
const workspaceID = 1

// rawTemplate joins a head and one of its versions.
func rawTemplate(t *wire.Template, v wire.Version) wire.RawTemplate {
	labels := labelsOf(t, v.Number)

	return wire.RawTemplate{
		Success:       true,
		ID:            t.ID,
		Name:          t.Name,
		Version:       v.Number,
		VersionID:     v.ID,
		WorkspaceID:   workspaceID,
		Tags:          nonNil(t.Tags),
		Labels:        labels,
		Blueprint:     v.Blueprint,
		Metadata:      v.Metadata,
		CommitMessage: wire.OrNull(v.CommitMessage),
		Author:        v.Author,
		CreatedAt:     v.CreatedAt,
		Snippets:      []wire.UsedSnippet{},
		Latest:        t.Latest(),
		AllLabels:     nonNil(t.Labels),
	}
}

// renderTemplate answers a fetch from one version. Server and sidecar both use it, so
// that their answers are the same.
//
// The answer has the blueprint as it was published; the variables fill llm_kwargs only.
// Its metadata.model follows the provider and the model of llm_kwargs, because clients
// choose by it what to call.
func renderTemplate(
	ctx context.Context, raw *wire.RawTemplate, p *render.Prepared, f wire.TemplateFetch,
) (wire.RenderedTemplate, error) {
	// An app that names no provider will call the
	// template's own, so it gets that one's URL.
	provider := f.Provider
	if provider == "" {
		provider = p.Provider()
	}
	out := wire.RenderedTemplate{
		Success:         true,
		ID:              raw.ID,
		Name:            raw.Name,
		Version:         raw.Version,
		WorkspaceID:     raw.WorkspaceID,
		Tags:            nonNil(raw.Tags),
		CommitMessage:   raw.CommitMessage,
		Metadata:        p.Metadata(f.Provider, f.Model),
		Blueprint:       raw.Blueprint,
		Snippets:        nonNil(raw.Snippets),
		ProviderBaseURL: raw.ProviderBaseURLs.Of(provider),
	}

	kwargs, warnings, err := p.Kwargs(render.Call{
		Provider:  f.Provider,
		Model:     f.Model,
		Variables: f.Variables,
		Overrides: f.Overrides,
		Keep:      f.Keep,
		Context:   ctx,
	})
	switch {
	case err == nil:
		out.LLMKwargs = kwargs
	// The caller asked for exactly what failed.
	case f.Provider != "", errors.Is(err, render.ErrVariables):
		return wire.RenderedTemplate{}, err
	default: // a caller that did not ask for llm_kwargs still gets the template
		warnings = append(warnings, "llm_kwargs is null: "+wire.AsError(err).Message)
	}
	if f.Variables != nil && kwargs != nil {
		for _, hint := range p.Hints(maps.Keys(f.Variables)) {
			warnings = append(warnings[:len(warnings):len(warnings)], hint.Path+" "+hint.Message+".")
		}
	}
	out.Warning = wire.OrNull(strings.Join(warnings, " "))

	return out, nil
}

func published(
	t *wire.Template, number int, blueprint, metadata json.RawMessage, commitMessage string,
) wire.Published {
	return wire.Published{
		Success:       true,
		ID:            t.ID,
		Name:          t.Name,
		VersionID:     t.Versions[number-1].ID,
		VersionNumber: number,
		Tags:          nonNil(t.Tags),
		Labels:        labelsOf(t, number),
		Blueprint:     blueprint,
		Metadata:      metadata,
		CommitMessage: wire.OrNull(commitMessage),
		ExternalIDs:   nonNil(t.ExternalIDs),
	}
}

func listItem(t wire.Template, v wire.Version, isSnippet bool) wire.TemplateListItem {
	return wire.TemplateListItem{
		ID:            t.ID,
		Name:          t.Name,
		Version:       v.Number,
		Tags:          nonNil(t.Tags),
		Labels:        nonNil(t.Labels),
		Blueprint:     v.Blueprint,
		Metadata:      v.Metadata,
		CommitMessage: wire.OrNull(v.CommitMessage),
		ExternalIDs:   nonNil(t.ExternalIDs),
		IsSnippet:     isSnippet,
		CreatedAt:     t.CreatedAt,
		UpdatedAt:     t.UpdatedAt,
	}
}

// labelsOf lists the labels that point to a version.
func labelsOf(t *wire.Template, number int) []string {
	names := []string{}
	for _, l := range t.Labels {
		if l.Version == number {
			names = append(names, l.Name)
		}
	}
	return names
}

// nonNil makes sure that a list becomes an array in JSON, not null.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
