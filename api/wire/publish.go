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
	Author        string // who publishes: an email, or the id of a key; "" for the identity's key. Not part of the body
	Base          *int   // publish only if this is the latest version, 0 for none; nil: whatever is. Not part of the body
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
	Warnings      []Finding       `json:"warnings"` // what of it cannot be rendered; it is published all the same
	Warning       *string         `json:"warning"`  // null if all that was asked for was done
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
	f.templateName("prompt_template.prompt_name", p.Name)
	f.labels("release_labels", labels)
	return p, f.err()
}

// within reads the members of a member that is an object.
func (f *fields) within(name string) *fields {
	inner := &fields{}
	if raw := f.json(name, true); raw != nil {
		var err error
		if inner.object, err = ParseObject(raw); err != nil {
			fault := AsError(err).Fields[0] // the body is JSON, so it is of a member
			f.fault(name+"."+fault.Field, "%s", fault.Reason)
		}
	}
	return inner
}

// templateName checks what a template may be called.
func (f *fields) templateName(field, name string) {
	if strings.TrimSpace(name) != name || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		f.fault(field, "must not begin or end with a blank, nor hold control characters")
	}
}

// labels checks what labels may be called.
func (f *fields) labels(field string, names []string) {
	for _, l := range names {
		if l == "" {
			f.fault(field, "must not hold an empty label")
		}
	}
}

// DecodeOldPublish reads the older spelling of a publish, which has everything in one object.
func DecodeOldPublish(object Object) (Publish, error) {
	f := fields{object: object}
	p := Publish{
		Name:          f.text("prompt_name", true, NameRunesMax),
		Tags:          f.tags("tags"),
		Blueprint:     f.json("prompt_template", true),
		Metadata:      f.json("metadata", false),
		CommitMessage: f.text("commit_message", false, CommitMessageRunesMax),
		Labels:        f.tags("release_labels"),
	}
	f.templateName("prompt_name", p.Name)
	f.labels("release_labels", p.Labels)
	return p, f.err()
}
