package openapi

import (
	"encoding/json"
	"strings"
	"time"

	"promptspool/api/wire"
)

var exampleRow = wire.Row{
	ID:            exampleRequest,
	RequestID:     exampleRequest,
	ListTime:      exampleTime,
	AcceptedAt:    exampleTime,
	FunctionName:  "openai.ChatCompletion.create",
	Engine:        "gpt-4o-mini-2024-07-18",
	Provider:      "openai",
	InputTokens:   new(int64(12)),
	OutputTokens:  new(int64(4)),
	Price:         new(0.0000042),
	StartTime:     new(exampleTime),
	EndTime:       new(exampleTime.Add(750 * time.Millisecond)),
	Latency:       new(0.75),
	Status:        "SUCCESS",
	Tags:          []string{"demo"},
	Metadata:      []wire.MetadataRow{{Key: "user_id", Value: "ann"}},
	Scores:        []wire.Score{wire.IntegerScore("default", 100)},
	PromptName:    new("greet"),
	PromptVersion: new(int64(1)),
	FinishReason:  "stop",
	Turns:         1,
	OutputShape:   "plain_text",
	Readable:      true,
	InputExcerpt:  "Say hello to Ann.",
	OutputExcerpt: "Hello, Ann!",
	Snippet:       &wire.Snippet{In: "output", Match: "Hello, Ann", After: "!"},
}

var exampleDay = wire.AnalyticsStat{
	Date:         "2026-11-21",
	DateLabel:    "Nov 21",
	Requests:     1,
	Tokens:       16,
	InputTokens:  12,
	OutputTokens: 4,
	Cost:         0.0000042,
	Latency:      new(0.75),
	StatusCounts: map[string]int64{"SUCCESS": 1},
}

var exampleTotals = wire.Totals{
	Requests:     1,
	Cost:         0.0000042,
	InputTokens:  12,
	OutputTokens: 4,
	Latency: wire.Percentiles{
		Mean: new(0.75),
		P50:  new(0.75),
		P90:  new(0.75),
		P95:  new(0.75),
		P99:  new(0.75),
	},
}

var (
	days       = wire.ChartInterval{Interval: "day", BucketSizeMS: 86400000}
	taggedDemo = wire.Filter{Field: "tags", Operator: "is", Value: json.RawMessage(`"demo"`)}
	onlyDemo   = &wire.Filter{Logic: "AND", Filters: []wire.Filter{taggedDemo}}
	statistics = Statistics{StatisticsQuery: wire.StatisticsQuery{FilterGroup: onlyDemo, Bucket: "day"}}
)

// Comparison names two versions, and chooses the records by which they are compared.
type Comparison struct {
	open
	wire.ComparisonQuery
}

// Statistics chooses the records that are summed up.
type Statistics struct {
	open
	wire.StatisticsQuery
	// No effect on sums; the answer has a warning.
	SortBy string `json:"sort_by,omitempty"`
	// No effect on sums; the answer has a warning.
	SortOrder string `json:"sort_order,omitempty"`
}

// Export chooses the records of an export.
type Export struct {
	open
	wire.Search
	Unsearched
	// Events, one a line, or CSV: a line for each record, with the beginning of its texts.
	Format string `json:"format,omitempty" jsonschema:"enum=events,enum=csv,default=events"`
}

// SuggestQuery chooses values of a field.
type SuggestQuery struct {
	// A field of a filter.
	Field string `json:"field"`
	// The beginning of the values, in any case.
	Prefix string `json:"prefix,omitempty"`
	// Which metadata, of a field that has keys.
	Key string `json:"metadata_key,omitempty"`
	// Only names of the template with this id; with the field prompt.
	ID int64 `json:"prompt_id,omitempty" jsonschema:"minimum=1"`
	// Only values of the records that this filter finds: JSON, as in a search.
	Filter string `json:"filter_group,omitempty"`
	wire.FilterLine
	// How many values to list.
	Limit int `json:"limit,omitempty" jsonschema:"minimum=1,maximum=1000,default=50"`
}

// OrphanQuery chooses a page of orphans.
type OrphanQuery struct {
	// How many requests a page has at most.
	PerPage int `json:"per_page,omitempty" jsonschema:"minimum=1,maximum=1000,default=100"`
	// The next_cursor of an earlier page.
	Cursor string `json:"cursor,omitempty"`
}

// DeletionQuery chooses records by their metadata.
type DeletionQuery struct {
	// The key of the metadata.
	Key string `json:"metadata_key" jsonschema:"minLength=1"`
	// The value, as a whole.
	Value string `json:"metadata_value" jsonschema:"minLength=1"`
	// Only what came up to this time; up to now, if it is left out.
	Before time.Time `json:"before,omitzero"`
}

const backtestText = "The messages sent then, and those that would be sent now."

var deleted = wire.Deleted{Success: true, Records: 1, Events: 4, GoneBy: exampleTime.Add(24 * time.Hour)}

var requestOperations = []operation{
	{
		id: "searchRequests", tag: tagRequests, name: "search-requests",
		route:   "POST /api/public/v2/requests/search",
		summary: "Find records",
		detail: "Newest first, unless `sort_by` says otherwise. " +
			"Pages go by `page` through the first 100,000 records, or by `cursor` without an end. " +
			"A wrong field or operator is answered with those that exist.",
		optional: true,
		body:     Search{Search: wire.Search{FilterGroup: onlyDemo, Q: "hello ann", PerPage: 20}},
		answers: success("A page of records.", wire.SearchPage{
			Success:  true,
			Items:    []wire.Row{exampleRow},
			Paging:   wire.NewPaging(1, 20, 1),
			Complete: true,
			BudgetMS: 5000,
		}),
	},
	{
		id: "getRequest", tag: tagRequests, name: "get-request",
		route:   "GET /api/public/v2/requests/{request_id}",
		summary: "Read a record",
		answers: success("The record.", wire.Record{
			Success:       true,
			ID:            exampleRequest,
			RequestID:     exampleRequest,
			FunctionName:  exampleRow.FunctionName,
			Provider:      "openai",
			Model:         exampleRow.Engine,
			InputTokens:   exampleRow.InputTokens,
			OutputTokens:  exampleRow.OutputTokens,
			Tokens:        new(int64(16)),
			Price:         exampleRow.Price,
			StartTime:     exampleRow.StartTime,
			EndTime:       exampleRow.EndTime,
			LatencyMS:     new(750.0),
			Status:        "SUCCESS",
			FinishReason:  "stop",
			Readable:      true,
			InputExcerpt:  exampleRow.InputExcerpt,
			OutputExcerpt: exampleRow.OutputExcerpt,
			Tags:          []string{"demo"},
			Metadata:      map[string]string{"user_id": "ann"},
			Scores:        exampleRow.Scores,
			ListTime:      exampleTime,
			AcceptedAt:    exampleTime,
			Prompt: &wire.RecordPrompt{
				Name:           "greet",
				Version:        new(1),
				InputVariables: json.RawMessage(rawVariables),
			},
			Request: json.RawMessage(
				`{"function_name":"openai.ChatCompletion.create","kwargs":` + rawKwargs + `}`,
			),
			Events: []wire.RecordEvent{{
				ID:         exampleEvent,
				Kind:       wire.KindRequest,
				AcceptedAt: exampleTime,
				ArrivedAt:  exampleTime.Add(time.Second),
				Sidecar:    "pod-1",
			}},
		}),
	},
	{
		id: "analyzeRequests", tag: tagRequests, name: "analyze-requests",
		route:   "POST /api/public/v2/requests/analytics",
		summary: "Sum up what a search finds",
		detail: "Over time, and by model, provider, template, tag, metadata, error and tool. `overall` has " +
			"everything in one place.",
		optional: true,
		body:     statistics,
		answers: success("The sums.", wire.Analytics{
			Success:         true,
			ChartInterval:   days,
			AverageLatency:  new(0.75),
			TotalCost:       0.0000042,
			TotalTokens:     16,
			TotalRequests:   1,
			Stats:           []wire.AnalyticsStat{exampleDay},
			MostUsedModels:  []wire.Pair{{Name: "gpt-4o-mini-2024-07-18", Value: 1}},
			Overall:         exampleTotals,
			ByModel:         map[string]wire.Totals{"gpt-4o-mini-2024-07-18": exampleTotals},
			PercentileError: wire.PercentileError,
		}),
	},
	{
		id: "templateStatistics", tag: tagRequests, name: "template-statistics",
		route:    "POST /api/public/v2/requests/template-statistics",
		summary:  "Compare the versions of templates",
		detail:   "The calls that a search finds, summed up by template and version.",
		optional: true,
		body:     statistics,
		answers: success("The sums.", wire.TemplateStatistics{
			Success:         true,
			ChartInterval:   days,
			PercentileError: wire.PercentileError,
			Versions: []wire.VersionTotals{{
				Template: "greet",
				Version:  new(1),
				Totals:   exampleTotals,
				Series:   []wire.BucketTotals{{Date: "2026-11-21", Totals: exampleTotals}},
			}},
		}),
	},
	{
		id: "compareVersions", tag: tagRequests, name: "compare-versions",
		route:   "POST /api/public/v2/requests/template-comparison",
		summary: "Compare two versions of a template",
		detail: "Metric by metric: whether one version is better, or how many more calls it takes to know. " +
			"[How it is computed](scores.md#how-versions-are-compared).",
		body: Comparison{ComparisonQuery: wire.ComparisonQuery{Template: "greet", VersionA: 1, VersionB: 2}},
		answers: success("The metrics.", wire.VersionComparison{
			Success: true,
			A:       wire.ComparedCalls{Version: 1, Requests: 400},
			B:       wire.ComparedCalls{Version: 2, Requests: 380},
			Metrics: []wire.ComparedMetric{{
				Metric: "score", Name: "helpful", Method: "welch", Better: "higher",
				CountA: 210, CountB: 190, A: 71.5, B: 78.25, Low: new(2.5), High: new(11.0),
				Verdict: wire.VerdictBetter,
			}},
		}),
	},
	{
		id: "suggestValues", tag: tagRequests, name: "suggest-values",
		route:   "GET /api/public/v2/requests/suggestions",
		summary: "List values that a field has",
		query:   SuggestQuery{Field: "tags", Prefix: "de"},
		answers: success("The values, those of the newest records first.", wire.Suggestions{
			Success: true, Values: []string{"demo"}, Complete: true,
		}),
	},
	{
		id: "listOrphans", tag: tagRequests, name: "list-orphans",
		route:   "GET /api/public/v2/requests/orphans",
		summary: "List requests that have not arrived",
		detail:  "Although their scores, metadata or links have.",
		query:   OrphanQuery{PerPage: 100},
		answers: success("A page of them.", wire.OrphanPage{
			Success: true,
			Total:   1,
			Events:  1,
			Items: []wire.Orphan{{
				RequestID:      exampleRequest,
				Events:         1,
				Kinds:          []wire.Kind{wire.KindScore},
				Sidecars:       []string{"pod-1"},
				FirstArrivedAt: exampleTime,
				LastArrivedAt:  exampleTime,
			}},
		}),
	},
	{
		id: "exportRequests", tag: tagRequests, name: "export-requests",
		route:   "POST /api/public/v2/requests/export",
		summary: "Export what a search finds",
		detail: "As events, which another server can import, or with `\"format\": \"csv\"` as a line " +
			"for each record. " +
			"A long export comes in several answers: the next request sends the last `cursor`. " +
			"An answer that ends without `\"done\": true` was cut. `page` and `per_page` have no effect here, " +
			"and what has none is named in the header `Promptspool-Warning`.",
		optional: true,
		body:     Export{Search: wire.Search{FilterGroup: onlyDemo}, Format: wire.FormatEvents},
		answers: []answer{
			{
				status: 200, text: "The events or records.", media: MediaLines,
				example: ExportLine{Export: &wire.ExportMark{Done: true}},
			},
			{status: 200, media: MediaCSV, example: strings.Join(wire.CSVColumns, ",") + "\n"},
		},
	},
	{
		id: "backtest", tag: tagRequests, name: "backtest",
		route:   "POST /rest/backtest",
		summary: "Render the requests of a template with another version",
		detail:  "Nothing is sent to a model. A line for each request, newest first.",
		body:    BacktestQuery{Name: "greet", Version: 1, Last: 20},
		answers: []answer{{status: 200, text: backtestText, media: MediaLines, example: wire.Backtest{
			RequestID:      exampleRequest,
			AcceptedAt:     exampleTime,
			InputVariables: json.RawMessage(rawVariables),
			Sent: wire.BacktestSent{
				Version:   new(1),
				Provider:  "openai",
				Model:     exampleRow.Engine,
				Request:   json.RawMessage(`{"kwargs":` + rawKwargs + `}`),
				LatencyMS: new(750.0),
				Scores:    exampleRow.Scores,
			},
			Rendered: &wire.BacktestRender{
				Version:   1,
				Blueprint: json.RawMessage(rawGreeting),
				LLMKwargs: json.RawMessage(rawKwargs),
			},
		}}},
		errors: []wire.Code{wire.CodeNotFound},
	},
	{
		id: "deleteRequest", tag: tagRequests, name: "delete-request",
		route:   "DELETE /api/public/v2/requests/{request_id}",
		summary: "Delete a record for good",
		answers: success("It can no longer be found. Events of it that arrive later are dropped.", deleted),
	},
	{
		id: "deleteRequests", tag: tagRequests, name: "delete-requests",
		route:   "DELETE /api/public/v2/requests",
		summary: "Delete all records with a metadata value for good",
		query:   DeletionQuery{Key: "user_id", Value: "ann"},
		answers: success(
			"They can no longer be found. Events of them that arrive later are dropped.", deleted,
		),
	},
	{
		id: "repriceRequests", tag: tagRequests, name: "reprice-requests",
		route:   "POST /api/public/v2/requests/reprice",
		summary: "Compute costs again",
		detail: "With the prices of this version. One request works for a few seconds; " +
			"send `cursor` until `done` is true.",
		optional: true,
		body:     Continue{},
		answers:  success("How far it came.", wire.Repriced{Success: true, Seen: 1, Changed: 1, Done: true}),
	},
	{
		id: "rereadSpans", tag: tagRequests, name: "reread-spans",
		route:   "POST /api/public/v2/requests/reread",
		summary: "Read spans again",
		detail: "With what this version knows of OpenTelemetry's dialects: spans may become requests. " +
			"One HTTP request works for a few seconds; send `cursor` until `done` is true.",
		optional: true,
		body:     Continue{},
		answers:  success("How far it came.", wire.Reread{Success: true, Seen: 1, Changed: 1, Done: true}),
	},
	{
		id: "scanRequests", tag: tagRequests, name: "scan-requests",
		route:   "POST /api/public/v2/requests/scan",
		summary: "Find credentials in stored records",
		detail: "With `mask` they are masked. One request looks at `limit` records, or works for a few seconds; " +
			"send `cursor` until `done` is true. A key has one scan at a time.",
		optional: true,
		body:     Scan{Mask: true},
		answers: success("How far it came.", wire.Scanned{
			Success: true,
			Seen:    1,
			Found:   1,
			Masked:  1,
			Kinds:   map[wire.SecretKind]int{wire.SecretKey: 1},
			Done:    true,
			Items: []wire.FoundSecret{{
				RequestID: exampleRequest,
				SecretFinding: wire.SecretFinding{
					Kind: wire.SecretKey, Path: "kwargs.messages[0].content", Begins: "sk-a...",
				},
			}},
		}),
	},
}
