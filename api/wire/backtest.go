package wire

import (
	"encoding/json"
	"time"
)

// BacktestDefault is how many requests a backtest takes unless told otherwise.
const BacktestDefault = 20

// BacktestQuery is the body of POST /rest/backtest. It selects the newest requests of a
// template, whose variables are rendered with another version of it.
type BacktestQuery struct {
	// The template's name or id.
	Name string `json:"prompt_name" jsonschema:"anyof_type=string;integer,maxLength=512"`
	Selector
	// Only requests that were sent with this version.
	Sent int `json:"sent_version,omitempty" jsonschema:"anyof_type=integer;string"`
	// How many requests; 20 if it is left out.
	Last int `json:"last,omitempty" jsonschema:"minimum=1,maximum=1000"`
	// The provider that llm_kwargs are made for.
	Provider string `json:"provider,omitempty" jsonschema:"maxLength=512"`
	// Only requests that this filter finds.
	Filter *Filter `json:"filter_group,omitempty"`
	FilterLine
}

// Backtest is one line of the answer: the original call, and what would be sent now.
type Backtest struct {
	RequestID      string          `json:"request_id"`
	AcceptedAt     time.Time       `json:"accepted_at"`
	InputVariables json.RawMessage `json:"input_variables"` // an object
	Sent           BacktestSent    `json:"sent"`            // the messages sent then
	Rendered       *BacktestRender `json:"rendered"`        // null if it could not be rendered
	Error          string          `json:"error,omitempty"` // why it could not
}

// BacktestSent is the original call.
type BacktestSent struct {
	Version   *int            `json:"version"` // the version that was sent; null if unknown
	Provider  string          `json:"provider"`
	Model     string          `json:"model"`
	Request   json.RawMessage `json:"request"` // the call as it was logged, with its response
	Price     *float64        `json:"price"`
	LatencyMS *float64        `json:"latency_ms"`
	Scores    []Score         `json:"scores"` // the scores of the request
}

// BacktestRender is what would be sent now.
type BacktestRender struct {
	Version   int             `json:"version"`
	Blueprint json.RawMessage `json:"prompt_template"`
	LLMKwargs json.RawMessage `json:"llm_kwargs"` // the arguments that the model call would have now
	Warning   *string         `json:"warning"`
}
