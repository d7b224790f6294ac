package wire

import (
	"strings"
	"testing"
)

func TestAPatchTellsAbsentFromNull(t *testing.T) {
	p, err := Decode[TemplatePatch](parse(t, `{"label": "prod", "messages": {"0": {}}, "tools": null, `+
		`"tool_choice": null, "response_format": null, "functions": [],
		"content": null, "model_parameters": {"a": 1}, "commit_message": "why", "release_labels": ["next"]}`))
	if err != nil {
		t.Fatal(err)
	}

	for what, pair := range map[string][2]string{
		"messages":         {string(p.Messages), `{"0": {}}`},
		"tools":            {string(p.Tools), "null"},
		"tool_choice":      {string(p.ToolChoice), "null"},
		"response_format":  {string(p.ResponseFormat), "null"},
		"functions":        {string(p.Functions), "[]"},
		"content":          {string(p.Content), ""},
		"function_call":    {string(p.FunctionCall), ""},
		"model_parameters": {string(p.ModelParameters), `{"a": 1}`},
		"label":            {p.Label, "prod"},
		"commit_message":   {p.CommitMessage, "why"},
		"release_labels":   {strings.Join(p.Labels, ","), "next"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %q, want %q", what, pair[0], pair[1])
		}
	}
}

func TestWhatIsWrongWithAPatchOrALabelIsNamed(t *testing.T) {
	patch := func(o Object) error { _, err := Decode[TemplatePatch](o); return err }
	label := func(o Object) error { _, err := Decode[LabelWrite](o); return err }
	move := func(o Object) error { _, err := Decode[LabelMove](o); return err }
	old := func(o Object) error { _, err := DecodeOldPublish(o); return err }
	fetch := func(o Object) error { _, err := Decode[TemplateFetch](o); return err }

	for _, c := range []struct {
		decode func(Object) error
		body   string
		field  string
	}{
		{patch, `{"version": 1, "label": "prod"}`, "label"},
		{patch, `{"version": 0}`, "version"},
		{patch, `{"messages": "all"}`, "messages"},
		{patch, `{"tools": 7}`, "tools"},
		{patch, `{"tool_choice": []}`, "tool_choice"},
		{patch, `{"response_format": "json"}`, "response_format"},
		{patch, `{"model_parameters": []}`, "model_parameters"},
		{patch, `{"model_parameters": {"response_format": {}}, "response_format": {}}`, "response_format"},
		{patch, `{"release_labels": [""]}`, "release_labels"},
		{label, `{"prompt_version_number": 1}`, "name"},
		{label, `{"name": "prod"}`, "prompt_version_number"},
		{move, `{"prompt_version_number": "x"}`, "prompt_version_number"},
		{move, `{}`, "prompt_version_number"},
		{old, `{"prompt_template": {}}`, "prompt_name"},
		{old, `{"prompt_name": " x", "prompt_template": {}}`, "prompt_name"},
		{old, `{"prompt_name": "x"}`, "prompt_template"},
		{fetch, `{"skip_input_variable_rendering": "yes"}`, "skip_input_variable_rendering"},
	} {
		err := c.decode(parse(t, c.body))
		if e := AsError(err); err == nil || e.Code != CodeInvalid || e.Fields[0].Field != c.field {
			t.Errorf("%s: error %v, want a fault of %s", c.body, err, c.field)
		}
	}

	f, err := Decode[TemplateFetch](parse(t, `{"input_variables": {"a": 1}, "skip_input_variable_rendering": true}`))
	if err != nil || f.Variables != nil {
		t.Errorf("with rendering skipped, the variables are %v, error %v", f.Variables, err)
	}
}

func TestALabelsIDTellsItsTemplate(t *testing.T) {
	for _, template := range []int64{1, 77, 1 << 30} {
		for _, n := range []int64{1, 65535} {
			if id := LabelID(template, n); TemplateOfLabel(id) != template || id == LabelID(template, n-1) {
				t.Errorf("label %d of template %d has the id %d", n, template, id)
			}
		}
	}
}
