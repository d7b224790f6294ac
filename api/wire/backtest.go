package wire

import (
	"encoding/json"
	"time"
)

const (
	// BacktestsMax bounds the requests of one backtest.
	BacktestsMax = 1000

	// BacktestDefault is how many requests a backtest takes unless told otherwise.
	BacktestDefault = 20
)

// BacktestQuery is the body of POST /rest/backtest. It selects the newest requests of a
// template, whose variables are rendered with another version of it.
type BacktestQuery struct {
	Name       string  `json:"prompt_name"`
	Selector           // the version to render with; the zero Selector is the latest
	Sent       int     `json:"sent_version,omitempty"` // only requests sent with this version; 0 means with any
	Last       int     `json:"last,omitempty"`         // 0 is BacktestDefault
	Provider   string  `json:"provider,omitempty"`     // for llm_kwargs; "" as in a template fetch
	Filter     *Filter `json:"filter_group,omitempty"` // only requests that match
	FilterLine         // the same in one line; see Search
}

// DecodeBacktest reads a BacktestQuery.
func DecodeBacktest(object Object) (BacktestQuery, error) {
	f := fields{object: object}
	q := BacktestQuery{
		Name:     f.textOrInteger("prompt_name", true, NameRunesMax),
		Selector: Selector{Version: f.version("version"), Label: f.text("label", false, NameRunesMax)},
		Sent:     f.version("sent_version"),
		Last:     f.count("last", BacktestsMax),
		Provider: f.text("provider", false, NameRunesMax),
		Filter:   f.filter("filter_group"),

		FilterLine: f.filterLine(),
	}
	return q, f.err()
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
