package archive

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"promptspool/api/calls"
	"promptspool/api/calls/otel"
	"promptspool/api/wire"
)

// latencyMax is longer than any model call: times further apart are a caller's mistake,
// not a latency.
const latencyMax = 24 * time.Hour

// Request is what a record shows of its request. It is derived from the body
// once, on arrival.
type Request struct {
	FunctionName string `json:"function_name"`
	Provider     string `json:"provider,omitempty"`
	Model        string `json:"model,omitempty"`
	ModelAsked   bool   `json:"model_asked,omitempty"` // the answer names none
	Asked        string `json:"asked,omitempty"`       // the model that was asked for, if another one answered

	Tokens

	// Traced is set if the request comes from a span; see State.putRequest.
	Traced bool `json:"traced,omitempty"`

	// Place is where a logged call is in the caller's trace; see State.span and State.Link.
	Place

	Tier       string         `json:"tier,omitempty"`
	Price      *calls.Dollars `json:"price,omitempty"`       // nil: unknown
	PriceGiven bool           `json:"price_given,omitempty"` // by the caller or the provider: no table changes it
	TablePrice *calls.Dollars `json:"table_price,omitempty"` // what a table says beside a given one

	ResponseID   string   `json:"response_id,omitempty"` // the provider's
	FinishReason string   `json:"finish_reason,omitempty"`
	Tools        []string `json:"tools,omitempty"`        // of each tool call its name; at most toolsMax
	Turns        int      `json:"turns,omitempty"`        // messages that were sent
	OutputShape  string   `json:"output_shape,omitempty"` // one of calls.Shape...; "" without output
	Unreadable   bool     `json:"unreadable,omitempty"`   // the response has no known shape

	// See calls.Excerpts. They are here and not in the row: a list shows few of them at a
	// time, and in the rows every scan would pass them.
	InputExcerpt  string `json:"input_excerpt,omitempty"`
	OutputExcerpt string `json:"output_excerpt,omitempty"`

	Call *calls.Call `json:"-"` // what the request says, if it was just read

	Start     *time.Time        `json:"start,omitempty"` // as the caller sent it; nil if it is not a time
	End       *time.Time        `json:"end,omitempty"`
	Status    string            `json:"status"`
	ErrorType string            `json:"error_type,omitempty"`
	Tags      []string          `json:"tags,omitempty"`
	Metadata  map[string]string `json:"metadata,omitempty"`
	Prompt    *Link             `json:"prompt,omitempty"`
	GroupID   string            `json:"group_id,omitempty"`
}

// Tokens is a calls.Usage as a state has it.
type Tokens struct {
	Input          *int64 `json:"input_tokens,omitempty"`
	Output         *int64 `json:"output_tokens,omitempty"`
	Cached         *int64 `json:"cached_tokens,omitempty"`
	CacheWrite     *int64 `json:"cache_write_tokens,omitempty"`
	CacheWriteHour *int64 `json:"cache_write_hour_tokens,omitempty"`
	Reasoning      *int64 `json:"reasoning_tokens,omitempty"`
	AudioInput     *int64 `json:"audio_input_tokens,omitempty"`
	AudioOutput    *int64 `json:"audio_output_tokens,omitempty"`
	CachedAudio    *int64 `json:"cached_audio_tokens,omitempty"`
}

// Place is a wire.TracePlace as a state has it.
type Place struct {
	TraceID      string `json:"trace_id,omitempty"`
	SpanID       string `json:"span_id,omitempty"`
	ParentSpanID string `json:"parent_span_id,omitempty"`
}

// toolsMax bounds the names of tools in a list's row.
const toolsMax = 64

// readRequest derives what it can. Whatever has an unexpected shape leaves
// its fields unknown.
func readRequest(object wire.Object, w wire.RequestWrite) *Request {
	// Whether the body is a track-request or a log-request,
	// most fields have the same names.
	r := newRequest(w)
	call := calls.ReadObject(context.Background(), object)
	r.take(&call)
	if wire.IsLog(object) {
		// A member that is at fault is missing in it.
		details, _ := wire.DecodeLog(object, time.Time{})
		r.takeLog(&details)
	}

	return r
}

// newRequest returns what a decoded request says itself.
func newRequest(w wire.RequestWrite) *Request {
	r := &Request{
		FunctionName: w.FunctionName,
		Provider:     calls.Provider(w),
		Start:        timeOrNil(w.Start),
		End:          timeOrNil(w.End),
		Tags:         w.Tags,
		Metadata:     w.Metadata,
		Prompt:       newLink(w.PromptLink),
		GroupID:      w.GroupID,
		Place:        Place(w.TracePlace),
	}

	// The body has the variables, and they may be long.
	if r.Prompt != nil {
		r.Prompt.InputVariables = nil
	}

	return r
}

// readTraced reads the request of a stored span, nil if that is not a model call.
func readTraced(span *otel.Span) *Request {
	if !span.IsCall() {
		return nil
	}

	call := calls.ReadTraced(context.Background(), span)
	r := newRequest(span.Write())
	r.take(&call)
	r.Traced = true
	if price, err := calls.ParseDollars(string(span.Price)); err == nil && price > 0 {
		r.Price, r.PriceGiven = &price, true
	}

	return r
}

// ReadAgain reads from the body of its event what the call says, as today's version understands it.
// Where and when the call was, and what it is filed under, stays as it was.
func (r *Request) ReadAgain(kind wire.Kind, body wire.Object) {
	e := Event{Event: wire.Event{Kind: kind}}
	e.read(body)
	// Today's version may see no call in a span: the record stays one.
	if e.Request == nil {
		return
	}

	before := *r
	*r = *e.Request
	r.FunctionName, r.Traced, r.Place = before.FunctionName, before.Traced, before.Place
	r.Start, r.End, r.GroupID = before.Start, before.End, before.GroupID
	r.Tags, r.Metadata, r.Prompt = before.Tags, before.Metadata, before.Prompt
}

// take copies what a call says.
func (r *Request) take(c *calls.Call) {
	r.Model, r.ResponseID, r.FinishReason, r.Tier = c.Model, c.ResponseID, c.FinishReason, c.Tier
	r.ModelAsked = c.Asked
	r.Asked = ""
	if c.AskedModel != c.Model {
		r.Asked = c.AskedModel
	}
	r.Unreadable = !c.Readable
	r.Status, r.ErrorType = c.Status, ""
	if c.Failure != nil {
		r.ErrorType = c.Failure.Type
	}
	r.Turns, r.OutputShape = len(c.Input), c.Shape()
	r.Tools = c.Tools()
	// An agent may call hundreds, and the row is read with every list.
	r.Tools = r.Tools[:min(len(r.Tools), toolsMax)]
	r.InputExcerpt, r.OutputExcerpt = c.Excerpts()
	r.Call, r.Tokens = c, Tokens(c.Usage)

	// A price from the caller, which knows its discounts, stays.
	if price := c.Price; price > 0 && !r.PriceGiven {
		r.Price, r.PriceGiven = &price, true
	}
}

// takeLog copies what a log-request names otherwise than a track-request.
func (r *Request) takeLog(w *wire.LogWrite) {
	if w.Provider != "" {
		r.Provider = calls.Clip(w.Provider)
	}

	// A price of 0 is the contract's default, and says nothing.
	if price, err := calls.ParseDollars(string(w.Price)); err == nil && price > 0 {
		r.Price, r.PriceGiven = &price, true
	}
	if link := w.Link(); link.Name != "" {
		// The body has the variables, and they may be long.
		link.InputVariables = nil
		r.Prompt = newLink(link)
	}
}

// timeOrNil returns nil for the zero time, which stands for unknown.
func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}

	return &t
}

// latency returns nil if either time is unknown or they make no sense together.
func (r *Request) latency() *time.Duration {
	if r.Start == nil || r.End == nil {
		return nil
	}
	d := r.End.Sub(*r.Start)
	// A wrong latency would spoil every average that it is in.
	if d < 0 || d > latencyMax {
		return nil
	}

	return &d
}

// latencyMS is latency in milliseconds.
func (r *Request) latencyMS() *float64 {
	d := r.latency()
	if d == nil {
		return nil
	}
	ms := float64(*d) / 1e6

	return &ms
}

// totalTokens returns nil unless both counts are known.
func (r *Request) totalTokens() *int64 {
	if r.Tokens.Input == nil || r.Tokens.Output == nil {
		return nil
	}
	n := *r.Tokens.Input + *r.Tokens.Output

	return &n
}

// Prices returns what a call cost at a moment, at a service tier ("" is the usual one).
//
// ok is false if that is unknown. It is safe for concurrent use.
type Prices interface {
	Cost(provider, model, tier string, at time.Time, u calls.Usage) (cost calls.Dollars, ok bool)
}

// selfHosted are providers whose models run on their user's machines, under names that
// others sell. No price list applies to them.
var selfHosted = []string{"ollama", "vllm", "llamacpp", "lmstudio", "huggingface"}

// legacyNames are models after which many deployments are still named, whatever they run.
var legacyNames = regexp.MustCompile(`^gpt-(4|4-32k|3\.?5-turbo|3\.?5-turbo-16k)$`)

// isDeployment reports whether the model may be another one under the name of an Azure deployment.
func (r *Request) isDeployment() bool {
	return r.ModelAsked && strings.Contains(strings.ToLower(r.Provider), "azure") &&
		legacyNames.MatchString(strings.ToLower(r.Model))
}

// SetPrice sets what the call cost when it was made, and reports whether that changed
// anything. It was made at its start or, if that is unknown, when it was accepted. A price
// from the caller stays, beside that of the table.
func (r *Request) SetPrice(prices Prices, accepted time.Time) (changed bool) {
	at := accepted
	// A start after the call was accepted is a wrong clock.
	if r.Start != nil && r.Start.Before(accepted) {
		at = *r.Start
	}

	var price *calls.Dollars
	if prices != nil && !slices.Contains(selfHosted, strings.ToLower(r.Provider)) && !r.isDeployment() {
		if cost, ok := prices.Cost(r.Provider, r.Model, r.Tier, at, calls.Usage(r.Tokens)); ok {
			price = &cost
		}
	}

	// The caller and the provider know of discounts, and no table does.
	to := &r.Price
	if r.PriceGiven {
		to = &r.TablePrice
	}
	changed = (price == nil) != (*to == nil) || price != nil && *price != **to
	*to = price

	return changed
}
