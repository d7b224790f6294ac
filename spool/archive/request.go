package archive

import (
	"encoding/json"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"promptspool/api/wire"
)

// latencyMax is beyond what a model call can take: times further apart are a caller's mistake, not a latency.
const latencyMax = 24 * time.Hour

// Request is what a record shows of its request, derived from the body once, when it arrives.
type Request struct {
	FunctionName string            `json:"function_name"`
	Provider     string            `json:"provider,omitempty"`
	Model        string            `json:"model,omitempty"`
	InputTokens  *int64            `json:"input_tokens,omitempty"`
	OutputTokens *int64            `json:"output_tokens,omitempty"`
	Start        *time.Time        `json:"start,omitempty"` // as the caller said; nil if it was no moment
	End          *time.Time        `json:"end,omitempty"`
	Status       string            `json:"status"`
	Tags         []string          `json:"tags,omitempty"`
	Metadata     map[string]string `json:"metadata,omitempty"`
	Prompt       *Link             `json:"prompt,omitempty"`
	GroupID      string            `json:"group_id,omitempty"`
}

// readRequest derives what can be derived. A response of an unexpected shape leaves its fields unknown.
func readRequest(w wire.RequestWrite) *Request {
	usage, _ := wire.Lookup(w.Response, "usage")
	r := &Request{
		FunctionName: w.FunctionName,
		Provider:     provider(w),
		Model:        model(w),
		InputTokens:  tokens(usage, "prompt_tokens", "input_tokens"),
		OutputTokens: tokens(usage, "completion_tokens", "output_tokens"),
		Start:        moment(w.Start),
		End:          moment(w.End),
		Status:       status(w),
		Tags:         w.Tags,
		Metadata:     w.Metadata,
		Prompt:       newLink(w.Prompt),
		GroupID:      w.GroupID,
	}
	if r.Prompt != nil {
		r.Prompt.InputVariables = nil
	}
	return r
}

// provider is what the caller said, else the first segment of the function's name.
func provider(w wire.RequestWrite) string {
	if w.ProviderType != "" {
		return w.ProviderType
	}
	first, _, _ := strings.Cut(w.FunctionName, ".")
	return strings.ToLower(first)
}

// model is the response's, which knows what really answered, else what was asked for.
func model(w wire.RequestWrite) string {
	for _, place := range []struct {
		in   json.RawMessage
		name string
	}{{w.Response, "model"}, {w.Kwargs, "model"}, {w.Kwargs, "engine"}} {
		var s string
		if raw, ok := wire.Lookup(place.in, place.name); ok && json.Unmarshal(raw, &s) == nil && s != "" {
			return clip(s)
		}
	}
	return ""
}

// clip cuts a text that no bound was checked for when it was accepted: it goes into every row of a list.
func clip(s string) string {
	if utf8.RuneCountInString(s) <= wire.NameRunesMax {
		return s
	}
	return string([]rune(s)[:wire.NameRunesMax])
}

// status is the caller's, else ERROR if the caller named an error.
func status(w wire.RequestWrite) string {
	switch {
	case w.Status != "":
		return w.Status
	case w.ErrorType != "":
		return "ERROR"
	}
	return "SUCCESS"
}

// tokens returns the first of the counts called names that is a whole number of 0 or more; nil if none is.
func tokens(usage json.RawMessage, names ...string) *int64 {
	for _, name := range names {
		raw, ok := wire.Lookup(usage, name)
		var x float64
		if !ok || json.Unmarshal(raw, &x) != nil {
			continue
		}
		if x >= 0 && x <= 1<<53 && x == math.Trunc(x) {
			n := int64(x)
			return &n
		}
	}
	return nil
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// latency is nil when either time is unknown or they make no sense together.
func (r *Request) latency() *time.Duration {
	if r.Start == nil || r.End == nil {
		return nil
	}
	d := r.End.Sub(*r.Start)
	if d < 0 || d > latencyMax {
		return nil
	}
	return &d
}

// totalTokens is known when both counts are.
func (r *Request) totalTokens() *int64 {
	if r.InputTokens == nil || r.OutputTokens == nil {
		return nil
	}
	n := *r.InputTokens + *r.OutputTokens
	return &n
}
