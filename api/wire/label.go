package wire

import "time"

// Label points to a version.
type Label struct {
	ID      int64  `json:"id,omitempty"` // unique in the project
	Name    string `json:"name"`         // the label's name
	Version int    `json:"version"`      // the version that the label points to
}

// labelIDBits are the low bits of a label's id, which hold the label's own number. The
// rest is the template's id.
const labelIDBits = 16

// LabelID makes the id of the n-th label that a template ever had, from 1 to 65,535.
func LabelID(template, n int64) int64 { return template<<labelIDBits | n }

// TemplateOfLabel returns the id of the template that a label belongs to.
func TemplateOfLabel(id int64) int64 { return id >> labelIDBits }

// Move is one step of a label's history; Version 0 means that the label was removed.
type Move struct {
	Label   string    `json:"label"`
	Version int       `json:"version"`      // the version that it points to since then; 0 if it was removed
	At      time.Time `json:"at"`           // when the label was moved
	By      string    `json:"by,omitempty"` // an email, or the id of a key
}

// LabelWrite is the body of POST /prompts/{id}/label: a new label and the version to
// point it to.
type LabelWrite struct {
	Name    string `json:"name,omitempty"`
	Version int    `json:"prompt_version_number"`
}

// DecodeLabel reads the body of a new label.
func DecodeLabel(object Object) (LabelWrite, error) {
	f := fields{object: object}
	w := LabelWrite{
		Name:    f.text("name", true, NameRunesMax),
		Version: f.requiredVersion("prompt_version_number"),
	}
	return w, f.err()
}

// DecodeLabelMove reads the body of PATCH /prompt-labels/{id}: the version to point the
// label to.
func DecodeLabelMove(object Object) (version int, err error) {
	f := fields{object: object}
	version = f.requiredVersion("prompt_version_number")
	return version, f.err()
}

// requiredVersion is version for a field that must not be absent.
func (f *fields) requiredVersion(name string) int {
	if _, ok := f.raw(name, true); !ok {
		return 0
	}
	return f.version(name)
}

// PlacedLabel answers a request that creates or moves a label.
type PlacedLabel struct {
	Success   bool      `json:"success"`
	CreatedAt time.Time `json:"created_at"` // when the label was moved there
	ID        int64     `json:"id"`         // the label's id
	Name      string    `json:"name"`       // the label's name
	PromptID  int64     `json:"prompt_id"`
	VersionID int64     `json:"prompt_version_id"`
	Version   int       `json:"prompt_version_number"` // the version that the label points to

	// Was is the version that the label pointed to before; 0 if it is new. Only the server knows.
	Was int `json:"-"`
}

// Labels answers GET /prompt-templates/{name or id}/labels.
type Labels struct {
	Success bool           `json:"success"`
	Labels  []ReleaseLabel `json:"release_labels"` // sorted by name
	Moves   []Move         `json:"moves"`          // their history, oldest first
}

// ReleaseLabel is a label, with the names that this answer gives its fields.
type ReleaseLabel struct {
	VersionID int64  `json:"prompt_version_id"`
	Version   int    `json:"prompt_version_number"` // the version that the label points to
	Name      string `json:"release_label"`
	ID        int64  `json:"release_label_id"`
}
