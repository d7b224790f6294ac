package wire

// Warned is the part of an answer that says what of the call had no effect.
type Warned struct {
	// Warning is what of the call had no effect; absent if there is nothing of that kind.
	Warning string `json:"warning,omitempty"`
}

// Warn sets the warning.
func (w *Warned) Warn(text string) { w.Warning = text }

// Warn adds a warning to that of the template itself.
func (t *RenderedTemplate) Warn(text string) { t.Warning = joined(t.Warning, text) }

// Warn adds a warning to that of the publication itself.
func (p *Published) Warn(text string) { p.Warning = joined(p.Warning, text) }

// joined returns both sentences; the first may be absent.
func joined(first *string, second string) *string {
	if first != nil {
		second = *first + " " + second
	}
	return &second
}
