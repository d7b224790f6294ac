package archive

import (
	"strings"
	"time"
	"unicode/utf8"

	"promptspool/api/wire"
	"promptspool/registry/prices"
)

// latencyMax is beyond what a model call can take: times further apart are a caller's mistake, not a latency.
const latencyMax = 24 * time.Hour

// Request is what a record shows of its request, derived from the body once, when it arrives.
type Request struct {
	FunctionName     string            `json:"function_name"`
	Provider         string            `json:"provider,omitempty"`
	Model            string            `json:"model,omitempty"`
	InputTokens      *int64            `json:"input_tokens,omitempty"` // see Usage for what is in and what is part of it
	OutputTokens     *int64            `json:"output_tokens,omitempty"`
	CachedTokens     *int64            `json:"cached_tokens,omitempty"`
	CacheWriteTokens *int64            `json:"cache_write_tokens,omitempty"`
	CacheWriteHour   *int64            `json:"cache_write_hour_tokens,omitempty"`
	ReasoningTokens  *int64            `json:"reasoning_tokens,omitempty"`
	AudioInput       *int64            `json:"audio_input_tokens,omitempty"`
	AudioOutput      *int64            `json:"audio_output_tokens,omitempty"`
	Tier             string            `json:"tier,omitempty"`
	Price            *prices.Dollars   `json:"price,omitempty"`       // nil: unknown
	PriceGiven       bool              `json:"price_given,omitempty"` // the caller said it; no table changes it
	FinishReason     string            `json:"finish_reason,omitempty"`
	Tools            []string          `json:"tools,omitempty"`        // names of the tools called, once for each call; at most toolsMax
	Turns            int               `json:"turns,omitempty"`        // messages that were sent
	OutputShape      string            `json:"output_shape,omitempty"` // one of the Shapes; "" when nothing came out
	Unreadable       bool              `json:"unreadable,omitempty"`   // the response is of no known shape
	Start            *time.Time        `json:"start,omitempty"`        // as the caller said; nil if it was no moment
	End              *time.Time        `json:"end,omitempty"`
	Status           string            `json:"status"`
	ErrorType        string            `json:"error_type,omitempty"`
	Tags             []string          `json:"tags,omitempty"`
	Metadata         map[string]string `json:"metadata,omitempty"`
	Prompt           *Link             `json:"prompt,omitempty"`
	GroupID          string            `json:"group_id,omitempty"`
}

// The shapes of an output, in the peer's words.
const (
	ShapeJSON      = "json" // a JSON object or array
	ShapeToolCall  = "tool_call"
	ShapePlainText = "plain_text"
)

// toolsMax bounds the names of tools in a row of a list.
const toolsMax = 64

// readRequest derives what can be derived. What is of an unexpected shape leaves its fields unknown.
func readRequest(object wire.Object, w wire.RequestWrite) *Request {
	r := &Request{
		FunctionName: w.FunctionName,
		Provider:     provider(w),
		Start:        moment(w.Start),
		End:          moment(w.End),
		Status:       status(w),
		ErrorType:    clip(w.ErrorType),
		Tags:         w.Tags,
		Metadata:     w.Metadata,
		Prompt:       newLink(w.Prompt),
		GroupID:      w.GroupID,
	}
	call := readCall(object)
	r.take(&call)
	if wire.IsLog(object) {
		r.logRequest(object)
	}
	if r.Prompt != nil {
		r.Prompt.InputVariables = nil
	}
	return r
}

// take notes what a call says.
func (r *Request) take(c *Call) {
	r.Model, r.FinishReason, r.Tier, r.Unreadable = c.Model, c.FinishReason, c.Tier, !c.Readable
	u := &c.Usage
	r.InputTokens, r.OutputTokens = u.Input, u.Output
	r.CachedTokens, r.CacheWriteTokens, r.CacheWriteHour = u.Cached, u.CacheWrite, u.CacheWriteHour
	r.ReasoningTokens, r.AudioInput, r.AudioOutput = u.Reasoning, u.AudioInput, u.AudioOutput
	r.Turns, r.OutputShape = len(c.Input), c.Shape()
	r.Tools = c.Tools()
	r.Tools = r.Tools[:min(len(r.Tools), toolsMax)]
}

// provider is what the caller said, else the first segment of the function's name.
func provider(w wire.RequestWrite) string {
	if w.ProviderType != "" {
		return w.ProviderType
	}
	first, _, _ := strings.Cut(w.FunctionName, ".")
	return strings.ToLower(first)
}

// clip cuts a text that no bound was checked for when it was accepted: it goes into every row of a list.
func clip(s string) string {
	if utf8.RuneCountInString(s) <= wire.NameRunesMax {
		return s
	}
	return string([]rune(s)[:wire.NameRunesMax])
}

// cutBytes cuts a text to so many bytes, between two characters.
func cutBytes(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}

	return strings.Clone(s[:most])
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
