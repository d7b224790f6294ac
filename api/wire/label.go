package wire

import "time"

// LabelWrite is the body of POST /prompts/{id}/label: a label and the version that it is to point to.
type LabelWrite struct {
	Name    string
	Version int
}

// DecodeLabel reads the body of a new label.
func DecodeLabel(object Object) (LabelWrite, error) {
	f := fields{object: object}
	w := LabelWrite{Name: f.text("name", true, NameRunesMax), Version: f.neededVersion("prompt_version_number")}
	return w, f.err()
}

// DecodeLabelMove reads the body of PATCH /prompt-labels/{id}: the version that the label is to point to.
func DecodeLabelMove(object Object) (version int, err error) {
	f := fields{object: object}
	version = f.neededVersion("prompt_version_number")
	return version, f.err()
}

func (f *fields) neededVersion(name string) int {
	if _, ok := f.raw(name, true); !ok {
		return 0
	}
	return f.version(name)
}

// PlacedLabel answers what creates or moves a label.
type PlacedLabel struct {
	Success   bool      `json:"success"`
	CreatedAt time.Time `json:"created_at"`
	ID        int64     `json:"id"`
	Name      string    `json:"name"`
	PromptID  int64     `json:"prompt_id"`
	VersionID int64     `json:"prompt_version_id"`
	Version   int       `json:"prompt_version_number"`
}

// Labels answers GET /prompt-templates/{name or id}/labels.
type Labels struct {
	Success bool           `json:"success"`
	Labels  []ReleaseLabel `json:"release_labels"` // sorted by name
	Moves   []Move         `json:"moves"`          // their history, oldest first
}

// ReleaseLabel is a label as that answer has it.
type ReleaseLabel struct {
	VersionID int64  `json:"prompt_version_id"`
	Version   int    `json:"prompt_version_number"`
	Name      string `json:"release_label"`
	ID        int64  `json:"release_label_id"`
}
