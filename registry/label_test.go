package registry_test

import (
	"encoding/json"
	"testing"

	"promptspool/api/wire"
)

func TestLabelsAreMadeMovedAndTakenAwayWithTheirHistory(t *testing.T) {
	r, ctx := newRegistry(t), t.Context()
	publish(t, r, says("greet", "one"))
	id := publish(t, r, says("greet", "two")).ID
	made, err := r.CreateLabel(ctx, ann, "greet", wire.LabelWrite{Name: "prod", Version: 1}, "ann@example.com")
	if err != nil || made.PromptID != id || made.Version != 1 || wire.TemplateOfLabel(made.ID) != id {
		t.Fatalf("made %+v, %v", made, err)
	}
	moved, err := r.MoveLabel(ctx, ann, made.ID, 2, "")
	if err != nil || moved.Version != 2 || moved.ID != made.ID || !moved.CreatedAt.Equal(made.CreatedAt) {
		t.Errorf("moved %+v, %v", moved, err)
	}

	for version, code := range map[int]wire.Code{0: wire.CodeInvalid, 3: wire.CodeInvalid} {
		_, err := r.MoveLabel(ctx, ann, made.ID, version, "")
		wantFault(t, err, code)
	}

	if err := r.DeleteLabel(ctx, ann, made.ID, ""); err != nil {
		t.Fatal(err)
	}
	_, err = r.MoveLabel(ctx, ann, made.ID, 1, "")
	wantFault(t, err, wire.CodeNotFound)
	wantFault(t, r.DeleteLabel(ctx, ann, 99<<16|1, ""), wire.CodeNotFound)

	again, err := r.CreateLabel(ctx, ann, "greet", wire.LabelWrite{Name: "prod", Version: 1}, "")
	if err != nil || again.ID == made.ID || !again.CreatedAt.After(made.CreatedAt) {
		t.Errorf("made again as %+v, %v", again, err)
	}

	labels, err := r.Labels(ctx, ann, "greet")
	if err != nil || len(labels.Labels) != 1 || labels.Labels[0].Name != "prod" || labels.Labels[0].Version != 1 {
		t.Errorf("labels %+v, %v", labels, err)
	}
	var history []string
	for _, m := range labels.Moves {
		history = append(history, m.By)
	}
	equal(t, "authors of the moves", history, []string{"ann@example.com", "k1", "k1", "k1"})

	// It was made twice, and moved from one version to another once.
	all, err := r.Moved(ctx, ann, made.CreatedAt)
	if err != nil || len(all) != 1 || all[0].Template != "greet" || all[0].Was != 1 || all[0].Version != 2 {
		t.Errorf("moved %+v, %v", all, err)
	}
	if later, err := r.Moved(ctx, ann, again.CreatedAt); err != nil || len(later) != 0 {
		t.Errorf("moved later %+v, %v", later, err)
	}
}

func TestALabelIsMadeByIDThoughATemplateIsCalledLikeIt(t *testing.T) {
	r, ctx := newRegistry(t), t.Context()
	publish(t, r, says("greet", "one"))
	publish(t, r, says("1", "another"))
	made, err := r.CreateLabel(ctx, ann, "1", wire.LabelWrite{Name: "prod", Version: 1}, "")
	if err != nil || made.PromptID != 1 {
		t.Errorf("made %+v, %v", made, err)
	}
}

func TestAnArchivedTemplateIsNotFoundAndComesBackWithItsVersions(t *testing.T) {
	r, ctx := newRegistry(t), t.Context()
	publish(t, r, says("greet", "one"))
	if err := r.Archive(ctx, ann, "greet", ""); err != nil {
		t.Fatal(err)
	}
	_, err := r.Raw(ctx, ann, "greet", wire.Selector{})
	wantFault(t, err, wire.CodeNotFound)
	wantFault(t, r.Archive(ctx, ann, "greet", ""), wire.CodeNotFound)

	for status, want := range map[string]int{"": 0, "active": 0, "deleted": 1, "all": 1} {
		list, err := r.List(ctx, ann, wire.TemplateListQuery{Status: status})
		if err != nil || list.Total != want {
			t.Errorf("a list of %q has %d, %v; want %d", status, list.Total, err, want)
		}
	}

	if err := r.Restore(ctx, ann, "greet", ""); err != nil {
		t.Fatal(err)
	}
	if got := fetchText(t, r, "greet", wire.Selector{Version: 1}); got != "one" {
		t.Errorf("it came back as %q", got)
	}
	wantFault(t, r.Restore(ctx, ann, "nosuch", ""), wire.CodeNotFound)
}

const chat = `{"type":"chat","messages":[{"role":"system","content":[{"type":"text","text":"s"}]},
	{"role":"user","content":[{"type":"text","text":"{q}"}]}],
	"tools":[{"type":"function","function":{"name":"f","parameters":{}}}],"tool_choice":"auto"}`

func TestAPatchMakesTheNextVersionOfWhatItNames(t *testing.T) {
	r, ctx := newRegistry(t), t.Context()
	publish(t, r, wire.Publish{
		PublishedName: wire.PublishedName{Name: "p"},
		PublishedVersion: wire.PublishedVersion{
			Blueprint: json.RawMessage(chat),
			Metadata: json.RawMessage(`{"model":{"provider":"openai","name":"gpt-4o",` +
				`"parameters":{"temperature":0.5,"top_p":1}},"owner":"ann"}`),
		},
	})
	out, err := r.Patch(ctx, ann, "p", wire.TemplatePatch{
		Messages: json.RawMessage(
			`{"1":{"role":"user","content":"{question}"},"2":{"role":"user","content":"more"}}`),
		Tools:           json.RawMessage(`null`),
		ToolChoice:      json.RawMessage(`null`),
		ModelParameters: json.RawMessage(`{"temperature":0,"top_p":null}`),
		ResponseFormat:  json.RawMessage(`{"type":"json_object"}`),
		Labels:          []string{"next"}, CommitMessage: "less",
	})
	if err != nil {
		t.Fatal(err)
	}
	var blueprint struct {
		Messages []struct {
			Role    string
			Content []struct{ Text string }
		}
		Tools          json.RawMessage
		ToolChoice     json.RawMessage `json:"tool_choice"`
		InputVariables []string        `json:"input_variables"`
	}

	if err := json.Unmarshal(out.Blueprint, &blueprint); err != nil {
		t.Fatal(err)
	}
	texts := len(blueprint.Messages) == 3 && blueprint.Messages[0].Content[0].Text == "s" &&
		blueprint.Messages[2].Content[0].Text == "more"
	if out.VersionNumber != 2 || !texts || blueprint.Tools != nil || blueprint.ToolChoice != nil {
		t.Errorf("version %d: %s", out.VersionNumber, out.Blueprint)
	}
	equal(t, "variables", blueprint.InputVariables, []string{"question"})
	want := `{"model":{"name":"gpt-4o","parameters":{"response_format":{"type":"json_object"},"temperature":0},` +
		`"provider":"openai"},"owner":"ann"}`
	if got := string(out.Metadata); got != want {
		t.Errorf("metadata %s, want %s", got, want)
	}
	got, err := r.Raw(ctx, ann, "p", wire.Selector{Label: "next"})
	if err != nil || got.Version != 2 || *got.CommitMessage != "less" {
		t.Errorf("label next: %+v, %v", got, err)
	}
}

func TestAPatchThatDoesNotFitIsRefused(t *testing.T) {
	r, ctx := newRegistry(t), t.Context()
	publish(t, r, wire.Publish{
		PublishedName:    wire.PublishedName{Name: "chat"},
		PublishedVersion: wire.PublishedVersion{Blueprint: json.RawMessage(chat)},
	})
	publish(t, r, says("completion", "x"))

	for _, c := range []struct {
		ident string
		p     wire.TemplatePatch
		field string
	}{
		{"chat", wire.TemplatePatch{Content: json.RawMessage(`[]`)}, "content"},
		{"completion", wire.TemplatePatch{Messages: json.RawMessage(`[]`)}, "messages"},
		{"chat", wire.TemplatePatch{Messages: json.RawMessage(`{"3":{}}`)}, "messages.3"},
		{"chat", wire.TemplatePatch{Messages: json.RawMessage(`{"-1":{}}`)}, "messages.-1"},
		{"chat", wire.TemplatePatch{Messages: json.RawMessage(`{"x":{}}`)}, "messages.x"},
		{"chat", wire.TemplatePatch{ModelParameters: json.RawMessage(`{"temperature":1}`)}, "model_parameters"},
		{"chat", wire.TemplatePatch{Messages: json.RawMessage(`[{"role":"cat"}]`)},
			"prompt_version.prompt_template.messages[0].role"},
	} {
		_, err := r.Patch(ctx, ann, c.ident, c.p)
		wantFault(t, err, wire.CodeInvalid, c.field)
	}
}
