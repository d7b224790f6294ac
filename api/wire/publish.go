package wire

import (
	"encoding/json"
	"strings"
)

// Publish is the body of POST /rest/prompt-templates. Raw members alias the body it was decoded from.
type Publish struct {
	Name          string
	Tags          []string // nil: leave them as they are
	Blueprint     json.RawMessage
	Metadata      json.RawMessage // nil if absent
	CommitMessage string
	Labels        []string
}

// Published answers a publish.
type Published struct {
	Success       bool            `json:"success"`
	ID            int64           `json:"id"`
	Name          string          `json:"prompt_name"`
	VersionID     int64           `json:"prompt_version_id"`
	VersionNumber int             `json:"version_number"`
	Tags          []string        `json:"tags"`
	Labels        []string        `json:"release_labels"`
	Blueprint     json.RawMessage `json:"prompt_template"`
	Metadata      json.RawMessage `json:"metadata"`
	CommitMessage *string         `json:"commit_message"`
	ExternalIDs   []any           `json:"external_ids"`
}

// DecodePublish reads POST /rest/prompt-templates. Its prompt_template and prompt_version may each hold more than the schema
// says: SDKs put one object into both. The blueprint's own rules are the registry's to check.
func DecodePublish(object Object) (Publish, error) {
	f := fields{object: object}
	base, version := f.within("prompt_template"), f.within("prompt_version")
	labels := f.tags("release_labels")
	if f.errs != nil {
		return Publish{}, f.err()
	}
	p := Publish{
		Name:          base.text("prompt_name", true, NameRunesMax),
		Tags:          base.tags("tags"),
		Blueprint:     version.json("prompt_template", true),
		Metadata:      version.json("metadata", false),
		CommitMessage: version.text("commit_message", false, CommitMessageRunesMax),
		Labels:        labels,
	}
	for _, e := range base.errs {
		f.fault("prompt_template."+e.Field, "%s", e.Reason)
	}
	for _, e := range version.errs {
		f.fault("prompt_version."+e.Field, "%s", e.Reason)
	}
	if strings.TrimSpace(p.Name) != p.Name || strings.ContainsFunc(p.Name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		f.fault("prompt_template.prompt_name", "must not begin or end with a blank, nor hold control characters")
	}
	for _, l := range labels {
		if l == "" {
			f.fault("release_labels", "must not hold an empty label")
		}
	}
	return p, f.err()
}

// within reads the members of a member that is an object.
func (f *fields) within(name string) *fields {
	inner := &fields{}
	if raw := f.json(name, true); raw != nil {
		var fault *FieldError
		if inner.object, fault = list(raw); fault != nil {
			f.fault(name+"."+fault.Field, "%s", fault.Reason)
		}
	}
	return inner
}
