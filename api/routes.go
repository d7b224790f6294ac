package api

import (
	"strings"

	"promptspool/api/access"
	"promptspool/api/mcp"
	"promptspool/api/wire"
)

// routes is the whole API. The first route that fits wins; what apps call most is first. A path
// may have several spellings, with spaces between them. Without a method it is POST.
var routes = expandSpellings([]route{
	{name: "fetch-template", path: "/prompt-templates/",
		needs: templates, body: optionalBody,
		members: membersOf[wire.TemplateFetch]("metadata_filters", "workspace_id").warning(),
		handle:  (*API).fetchTemplate},

	// Writes.
	{name: "track-request", path: "/rest/track-request", strict: true,
		needs: recorder, body: objectBody, handle: (*API).trackRequest},
	{name: "track-request", path: "/track-request",
		needs: recorder, body: objectBody, handle: (*API).trackRequest},
	{name: "track-score", path: "/rest/track-score /library-track-score",
		needs: recorder, body: objectBody, handle: (*API).trackScore},
	{name: "track-metadata", path: "/rest/track-metadata /library-track-metadata",
		needs: recorder, body: objectBody, handle: (*API).trackMetadata},
	{name: "track-prompt", path: "/rest/track-prompt /library-track-prompt",
		needs: recorder, body: objectBody, handle: (*API).trackPrompt},
	{name: "create-group", path: "/rest/create-group /create-group",
		needs: recorder, body: objectBody, handle: (*API).createGroup},
	{name: "track-group", path: "/rest/track-group /track-group",
		needs: recorder, body: objectBody, handle: (*API).trackGroup},
	{name: "log-request", path: "/log-request",
		needs: recorder, body: objectBody, handle: (*API).logRequest},

	// OpenTelemetry. Exporters append the path to a base, or post to the base itself, and users
	// put the whole path into the base: that of spans, mostly.
	{name: "otlp-traces", path: "/v1/traces /v1/traces/v1/traces /",
		needs: recorder, body: otlpBody, handle: (*API).exportTraces},
	{name: "otlp-logs", path: "/v1/logs /v1/logs/v1/logs /v1/traces/v1/logs",
		needs: recorder, body: otlpBody, handle: (*API).exportLogs},
	{name: "otlp-metrics", path: "/v1/metrics /v1/metrics/v1/metrics /v1/traces/v1/metrics",
		needs: recorder, body: otlpBody, handle: (*API).exportMetrics},
	{name: "spans-bulk", path: "/spans-bulk",
		needs: recorder, body: objectBody, handle: (*API).spansBulk},
	{name: "close-trace", path: "/api/public/v2/traces/", suffix: "/close",
		needs: recorder, body: optionalBody, handle: (*API).closeTrace},
	{name: "search-sessions",
		path:  "/api/public/v2/sessions/search /api/public/v2/traces/search /api/public/v2/users/search",
		needs: readRecords, body: optionalBody,
		members: membersOf[wire.RollupSearch]("", ""),
		handle:  (*API).searchRollups},
	{name: "search-spans", path: "/api/public/v2/spans/search",
		needs: readRecords, body: optionalBody,
		members: membersOf[wire.SpanSearch]("", ""),
		handle:  (*API).searchSpans},
	{method: "GET", name: "get-trace", path: "/api/public/v2/traces/",
		needs:   readRecords,
		members: membersOf[wire.TraceQuery]("", ""),
		handle:  (*API).trace},
	{method: "GET", name: "get-session", path: "/api/public/v2/sessions/",
		needs: readRecords, handle: (*API).session},
	{method: "DELETE", name: "delete-trace", path: "/api/public/v2/traces/",
		needs: changeRecords, handle: (*API).deleteTrace},
	{method: "DELETE", name: "delete-session", path: "/api/public/v2/sessions/",
		needs: changeRecords, handle: (*API).deleteSession},

	// Templates and labels.
	{method: "GET", name: "template-labels", path: "/prompt-templates/", suffix: "/labels",
		needs: templates, handle: (*API).templateLabels},
	{name: "create-label", path: "/prompts/", suffix: "/label",
		needs: templates, body: objectBody, handle: (*API).createLabel},
	{method: "PATCH", name: "move-label", path: "/prompt-labels/",
		needs: templates, body: objectBody,
		members: membersOf[wire.LabelMove]("", ""),
		handle:  (*API).moveLabel},
	{method: "DELETE", name: "delete-label", path: "/prompt-labels/",
		needs: templates, handle: (*API).deleteLabel},
	{name: "restore-template", path: "/rest/prompt-templates/", suffix: "/restore",
		needs: templates, body: optionalBody, handle: (*API).restoreTemplate},
	{method: "PATCH", name: "patch-template", path: "/rest/prompt-templates/",
		needs: templates, body: objectBody,
		members: membersOf[wire.TemplatePatch]("", ""),
		handle:  (*API).patchTemplate},
	{method: "DELETE", name: "archive-template", path: "/rest/prompt-templates/",
		needs: templates, handle: (*API).archiveTemplate},
	{name: "publish-template", path: "/library-publish-prompt-template /rest/publish-prompt-template",
		needs: templates, body: objectBody,
		members: knownMembers("", "folder_id workspace_id").keeping(),
		handle:  (*API).publishTemplateOld},
	{method: "GET", name: "raw-template", path: "/prompt-templates/", unservedSuffix: "/snippet-usage",
		needs:   templates,
		members: membersOf[wire.RawQuery]("", "").warning(),
		handle:  (*API).rawTemplate},
	{method: "GET", name: "get-template", path: "/library-get-prompt-template /rest/get-prompt-template",
		needs:   templates,
		members: membersOf[wire.NamedQuery]("", "").warning(),
		handle:  (*API).getTemplate},
	{method: "GET", name: "list-templates", path: "/prompt-templates /rest/prompts",
		needs:   templates,
		members: membersOf[wire.TemplateListQuery]("", ""),
		handle:  (*API).listTemplates},
	{name: "publish-template", path: "/rest/prompt-templates",
		needs: templates, body: objectBody,
		members: knownMembers("", "prompt_template.folder_id prompt_template.workspace_id").keeping(),
		handle:  (*API).publishTemplate},

	// Tools of agents, which read the routes of templates and of what is recorded.
	{name: "mcp", path: "/mcp",
		needs: templates, body: objectBody, bodyMax: mcp.MessageBytesMax, handle: (*API).mcp},

	// Recorded requests.
	{name: "export-requests", path: "/api/public/v2/requests/export",
		needs: readRecords, body: optionalBody,
		members: membersOf[wire.Export]("include_prompt_name", "page per_page metadata_cost_breakdown_key"),
		handle:  (*API).exportRequests},
	{name: "search-requests", path: "/api/public/v2/requests/search",
		needs: readRecords, body: optionalBody,
		members: membersOf[wire.Search]("include_prompt_name", "metadata_cost_breakdown_key"),
		handle:  (*API).searchRequests},
	{name: "analyze-requests", path: "/api/public/v2/requests/analytics",
		needs: readRecords, body: optionalBody,
		members: membersOf[wire.StatisticsQuery]("", "sort_by sort_order"),
		handle:  (*API).analyzeRequests},
	{name: "statistics", path: "/api/public/v2/requests/statistics",
		needs: readRecords, body: optionalBody,
		members: membersOf[wire.PartsQuery]("", "sort_by sort_order metadata_cost_breakdown_key score_agreement"),
		handle:  (*API).statistics},
	{name: "reprice-requests", path: "/api/public/v2/requests/reprice",
		needs: changeRecords, body: optionalBody,
		members: membersOf[wire.Continue]("", ""),
		handle:  (*API).repriceRequests},
	{name: "scan-requests", path: "/api/public/v2/requests/scan",
		needs: changeRecords, body: optionalBody,
		members: membersOf[wire.ScanQuery]("", ""),
		handle:  (*API).scanRequests},
	{method: "DELETE", name: "delete-requests", path: "/api/public/v2/requests",
		needs:   changeRecords,
		members: membersOf[wire.DeletionQuery]("", ""),
		handle:  (*API).deleteRequests},
	{method: "DELETE", name: "delete-request", path: "/api/public/v2/requests/",
		needs: changeRecords, handle: (*API).deleteRequest},
	{name: "backtest", path: "/rest/backtest",
		needs: readRecords, body: objectBody,
		members: membersOf[wire.BacktestQuery]("", ""),
		handle:  (*API).backtest},
	{method: "GET", name: "suggest-values", path: "/api/public/v2/requests/suggestions",
		needs:   readRecords,
		members: membersOf[wire.SuggestQuery]("", ""),
		handle:  (*API).suggestValues},
	{method: "GET", name: "list-orphans", path: "/api/public/v2/requests/orphans",
		needs:   readRecords,
		members: membersOf[wire.OrphanQuery]("", ""),
		handle:  (*API).listOrphans},
	{method: "GET", name: "get-request", path: "/api/public/v2/requests/",
		needs: readRecords, handle: (*API).getRequest},

	// Definitions of scores.
	{method: "GET", name: "list-score-definitions", path: "/api/public/v2/score-definitions",
		needs:   scoring,
		members: knownMembers("", ""),
		handle:  (*API).listScoreDefinitions},
	{method: "PUT", name: "define-score", path: "/api/public/v2/score-definitions/",
		needs: scoring, body: objectBody,
		members: membersOf[wire.ScoreDefinition]("", ""),
		handle:  (*API).defineScore},
	{method: "DELETE", name: "undefine-score", path: "/api/public/v2/score-definitions/",
		needs: scoring, handle: (*API).undefineScore},

	// Saved views.
	{method: "GET", name: "list-views", path: "/api/public/v2/views",
		needs:   views,
		members: knownMembers("", ""),
		handle:  (*API).listViews},
	{method: "PUT", name: "put-view", path: "/api/public/v2/views/",
		needs: views, body: objectBody,
		members: membersOf[wire.View]("", ""),
		handle:  (*API).putView},
	{method: "DELETE", name: "delete-view", path: "/api/public/v2/views/",
		needs: views, handle: (*API).deleteView},
	// Targets of notices.
	{method: "GET", name: "list-deliveries", path: "/api/public/v2/targets/", suffix: "/deliveries",
		needs:   targets,
		members: membersOf[wire.DeliveryQuery]("", ""),
		handle:  (*API).listDeliveries},
	{name: "test-target", path: "/api/public/v2/targets/", suffix: "/test",
		needs: targets, body: optionalBody, handle: (*API).testTarget},
	{name: "replay-deliveries", path: "/api/public/v2/targets/", suffix: "/replay",
		needs: targets, body: optionalBody,
		members: membersOf[wire.DeliveryChoice]("", ""),
		handle:  (*API).replayDeliveries},
	{name: "discard-deliveries", path: "/api/public/v2/targets/", suffix: "/discard",
		needs: targets, body: optionalBody,
		members: membersOf[wire.DeliveryChoice]("", ""),
		handle:  (*API).discardDeliveries},
	{method: "GET", name: "list-targets", path: "/api/public/v2/targets",
		needs:   targets,
		members: knownMembers("", ""),
		handle:  (*API).listTargets},
	{method: "PUT", name: "put-target", path: "/api/public/v2/targets/",
		needs: targets, body: objectBody,
		members: membersOf[wire.TargetSettings]("", ""),
		handle:  (*API).putTarget},
	{method: "DELETE", name: "remove-target", path: "/api/public/v2/targets/",
		needs: targets, handle: (*API).removeTarget},
	// Alerts.
	{method: "GET", name: "list-alerts", path: "/api/public/v2/alerts",
		needs:   alerts,
		members: knownMembers("", ""),
		handle:  (*API).listAlerts},
	{name: "test-alert", path: "/api/public/v2/alerts/test",
		needs: alerts, body: objectBody,
		members: membersOf[wire.AlertRule]("", ""),
		handle:  (*API).testAlert},
	{method: "PUT", name: "put-alert", path: "/api/public/v2/alerts/",
		needs: alerts, body: objectBody,
		members: membersOf[wire.AlertRule]("", ""),
		handle:  (*API).putAlert},
	{method: "DELETE", name: "remove-alert", path: "/api/public/v2/alerts/",
		needs: alerts, handle: (*API).removeAlert},

	// Questions of sidecars to their server.
	{name: "sync-events", path: "/sync/events",
		needs: recorder, body: batchBody, takesExpired: true, handle: (*API).syncEvents},
	{method: "GET", name: "sync-key", path: "/sync/key",
		takesExpired: true, handle: (*API).syncKey},
	{name: "sync-heartbeat", path: "/sync/heartbeat",
		needs: fleet, body: objectBody, handle: (*API).heartbeat},
	{method: "GET", name: "sync-fleet", path: "/sync/fleet",
		needs: fleet, handle: (*API).listFleet},
	{method: "GET", name: "sync-changes", path: "/sync/changes",
		needs: changes, handle: (*API).syncChanges},
})

// expandSpellings makes one route of each spelling of a path.
func expandSpellings(table []route) []route {
	var all []route
	for _, r := range table {
		if r.method == "" {
			r.method = "POST"
		}
		r.scope = access.Scope(r.name)
		for path := range strings.FieldsSeq(r.path) {
			r.path = path
			all = append(all, r)
		}
	}

	return all
}

// Routes lists what the API serves, in the order in which a request is matched. Each is a
// method and a path, in which {} is an identifier.
func Routes() (all []string) {
	for i := range routes {
		r := &routes[i]
		path := r.path
		if r.hasIdent() {
			path += "{}" + r.suffix
		}
		all = append(all, r.method+" "+path)
	}

	return all
}
