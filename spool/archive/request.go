package archive

import (
	"time"

	"promptspool/api/wire"
	"promptspool/registry/prices"
	"promptspool/spool/archive/calls"
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

// toolsMax bounds the names of tools in a row of a list.
const toolsMax = 64

// readRequest derives what can be derived. What is of an unexpected shape leaves its fields unknown.
func readRequest(object wire.Object, w wire.RequestWrite) *Request {
	r := &Request{
		FunctionName: w.FunctionName,
		Provider:     calls.Provider(w),
		Start:        moment(w.Start),
		End:          moment(w.End),
		Status:       status(w),
		ErrorType:    calls.Clip(w.ErrorType),
		Tags:         w.Tags,
		Metadata:     w.Metadata,
		Prompt:       newLink(w.Prompt),
		GroupID:      w.GroupID,
	}
	call := calls.ReadObject(object)
	r.take(&call)
	if wire.IsLog(object) {
		r.takeLog(calls.ReadLogDetails(object))
	}
	if r.Prompt != nil {
		r.Prompt.InputVariables = nil
	}
	return r
}

// take notes what a call says.
func (r *Request) take(c *calls.Call) {
	r.Model, r.FinishReason, r.Tier, r.Unreadable = c.Model, c.FinishReason, c.Tier, !c.Readable
	u := &c.Usage
	r.InputTokens, r.OutputTokens = u.Input, u.Output
	r.CachedTokens, r.CacheWriteTokens, r.CacheWriteHour = u.Cached, u.CacheWrite, u.CacheWriteHour
	r.ReasoningTokens, r.AudioInput, r.AudioOutput = u.Reasoning, u.AudioInput, u.AudioOutput
	r.Turns, r.OutputShape = len(c.Input), c.Shape()
	r.Tools = c.Tools()
	r.Tools = r.Tools[:min(len(r.Tools), toolsMax)]
}

// takeLog notes what a log-request calls otherwise than a track-request.
func (r *Request) takeLog(details calls.LogDetails) {
	if details.Provider != "" {
		r.Provider = details.Provider
	}

	// A price of 0 is the contract's default, and says nothing.
	if price, err := prices.ParseDollars(string(details.Price)); err == nil && price > 0 {
		r.Price, r.PriceGiven = &price, true
	}

	if details.Prompt.Name != "" {
		r.Prompt = newLink(details.Prompt)
	}
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
