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
		handling: reading((*API).fetchTemplate).with("metadata_filters", "workspace_id").warning()},

	// Writes.
	{name: "track-request", path: "/rest/track-request", strict: true,
		needs: recorder, body: objectBody, handling: plain((*API).trackRequest)},
	{name: "track-request", path: "/track-request",
		needs: recorder, body: objectBody, handling: plain((*API).trackRequest)},
	{name: "track-score", path: "/rest/track-score /library-track-score",
		needs: recorder, body: objectBody, handling: plain((*API).trackScore)},
	{name: "track-metadata", path: "/rest/track-metadata /library-track-metadata",
		needs: recorder, body: objectBody, handling: plain((*API).trackMetadata)},
	{name: "track-prompt", path: "/rest/track-prompt /library-track-prompt",
		needs: recorder, body: objectBody, handling: plain((*API).trackPrompt)},
	{name: "create-group", path: "/rest/create-group /create-group",
		needs: recorder, body: objectBody, handling: plain((*API).createGroup)},
	{name: "track-group", path: "/rest/track-group /track-group",
		needs: recorder, body: objectBody, handling: plain((*API).trackGroup)},
	{name: "log-request", path: "/log-request",
		needs: recorder, body: objectBody, handling: plain((*API).logRequest)},

	// OpenTelemetry. Exporters append the path to a base, or post to the base itself, and users
	// put the whole path into the base: that of spans, mostly.
	{name: "otlp-traces", path: "/v1/traces /v1/traces/v1/traces /",
		needs: recorder, body: otlpBody, handling: plain((*API).exportTraces)},
	{name: "otlp-logs", path: "/v1/logs /v1/logs/v1/logs /v1/traces/v1/logs",
		needs: recorder, body: otlpBody, handling: plain((*API).exportLogs)},
	{name: "otlp-metrics", path: "/v1/metrics /v1/metrics/v1/metrics /v1/traces/v1/metrics",
		needs: recorder, body: otlpBody, handling: plain((*API).exportMetrics)},
	{name: "spans-bulk", path: "/spans-bulk",
		needs: recorder, body: objectBody, handling: plain((*API).spansBulk)},
	{name: "close-trace", path: "/api/public/v2/traces/", suffix: "/close",
		needs: recorder, body: optionalBody, handling: plain((*API).closeTrace)},
	{name: "search-sessions",
		path:  "/api/public/v2/sessions/search /api/public/v2/traces/search /api/public/v2/users/search",
		needs: readRecords, body: optionalBody, handling: reading((*API).searchRollups)},
	{name: "search-spans", path: "/api/public/v2/spans/search",
		needs: readRecords, body: optionalBody, handling: asking(wire.Recorded.Spans)},
	{method: "GET", name: "get-trace", path: "/api/public/v2/traces/",
		needs: readRecords, handling: reading((*API).trace)},
	{method: "GET", name: "get-session", path: "/api/public/v2/sessions/",
		needs: readRecords, handling: plain((*API).session)},
	{method: "DELETE", name: "delete-trace", path: "/api/public/v2/traces/",
		needs: changeRecords, handling: plain((*API).deleteTrace)},
	{method: "DELETE", name: "delete-session", path: "/api/public/v2/sessions/",
		needs: changeRecords, handling: plain((*API).deleteSession)},

	// Templates and labels.
	{method: "GET", name: "template-labels", path: "/prompt-templates/", suffix: "/labels",
		needs: templates, handling: plain((*API).templateLabels)},
	{name: "create-label", path: "/prompts/", suffix: "/label",
		needs: templates, body: objectBody, handling: reading((*API).createLabel).keeping()},
	{method: "PATCH", name: "move-label", path: "/prompt-labels/",
		needs: templates, body: objectBody, handling: reading((*API).moveLabel)},
	{method: "DELETE", name: "delete-label", path: "/prompt-labels/",
		needs: templates, handling: plain((*API).deleteLabel)},
	{name: "restore-template", path: "/rest/prompt-templates/", suffix: "/restore",
		needs: templates, body: optionalBody, handling: plain((*API).restoreTemplate)},
	{method: "PATCH", name: "patch-template", path: "/rest/prompt-templates/",
		needs: templates, body: objectBody, handling: reading((*API).patchTemplate)},
	{method: "DELETE", name: "archive-template", path: "/rest/prompt-templates/",
		needs: templates, handling: plain((*API).archiveTemplate)},
	{name: "publish-template", path: "/library-publish-prompt-template /rest/publish-prompt-template",
		needs: templates, body: objectBody,
		handling: plain((*API).publishTemplateOld).with("", "folder_id workspace_id").keeping()},
	{method: "GET", name: "raw-template", path: "/prompt-templates/", unservedSuffix: "/snippet-usage",
		needs: templates, handling: reading((*API).rawTemplate).warning()},
	{method: "GET", name: "get-template", path: "/library-get-prompt-template /rest/get-prompt-template",
		needs: templates, handling: reading((*API).getTemplate).warning()},
	{method: "GET", name: "list-templates", path: "/prompt-templates /rest/prompts",
		needs: templates, handling: reading((*API).listTemplates)},
	{name: "publish-template", path: "/rest/prompt-templates",
		needs: templates, body: objectBody,
		handling: plain((*API).publishTemplate).
			with("", "prompt_template.folder_id prompt_template.workspace_id").keeping()},

	// Tools of agents, which read the routes of templates and of what is recorded.
	{name: "mcp", path: "/mcp",
		needs: templates, body: objectBody, bodyMax: mcp.MessageBytesMax, handling: plain((*API).mcp)},

	// Recorded requests.
	{name: "export-requests", path: "/api/public/v2/requests/export",
		needs: readRecords, body: optionalBody,
		handling: reading((*API).exportRequests).
			with("include_prompt_name", "page per_page metadata_cost_breakdown_key")},
	{name: "search-requests", path: "/api/public/v2/requests/search",
		needs: readRecords, body: optionalBody,
		handling: asking(wire.Recorded.Search).with("include_prompt_name", "metadata_cost_breakdown_key")},
	{name: "analyze-requests", path: "/api/public/v2/requests/analytics",
		needs: readRecords, body: optionalBody,
		handling: asking(wire.Recorded.Analyze).with("", "sort_by sort_order")},
	{name: "statistics", path: "/api/public/v2/requests/statistics",
		needs: readRecords, body: optionalBody,
		handling: asking(wire.Recorded.Statistics).
			with("", "sort_by sort_order metadata_cost_breakdown_key score_agreement")},
	{name: "reprice-requests", path: "/api/public/v2/requests/reprice",
		needs: changeRecords, body: optionalBody, handling: reading((*API).repriceRequests)},
	{name: "scan-requests", path: "/api/public/v2/requests/scan",
		needs: changeRecords, body: optionalBody, handling: reading((*API).scanRequests)},
	{method: "DELETE", name: "delete-requests", path: "/api/public/v2/requests",
		needs: changeRecords, handling: reading((*API).deleteRequests)},
	{method: "DELETE", name: "delete-request", path: "/api/public/v2/requests/",
		needs: changeRecords, handling: plain((*API).deleteRequest)},
	{name: "backtest", path: "/rest/backtest",
		needs: readRecords, body: objectBody, handling: reading((*API).backtest)},
	{method: "GET", name: "suggest-values", path: "/api/public/v2/requests/suggestions",
		needs: readRecords, handling: asking(wire.Recorded.Suggest)},
	{method: "GET", name: "list-orphans", path: "/api/public/v2/requests/orphans",
		needs: readRecords, handling: asking(wire.Recorded.Orphans)},
	{method: "GET", name: "get-request", path: "/api/public/v2/requests/",
		needs: readRecords, handling: plain((*API).getRequest)},

	// Definitions of scores.
	{method: "GET", name: "list-score-definitions", path: "/api/public/v2/score-definitions",
		needs: scoring, handling: knowing[struct{}]((*API).listScoreDefinitions)},
	{method: "PUT", name: "define-score", path: "/api/public/v2/score-definitions/",
		needs: scoring, body: objectBody, handling: reading((*API).defineScore)},
	{method: "DELETE", name: "undefine-score", path: "/api/public/v2/score-definitions/",
		needs: scoring, handling: removing(wire.Scoring.UndefineScore, "remove score definition",
			"The definition is removed. Its scores stay.")},

	// Saved views.
	{method: "GET", name: "list-views", path: "/api/public/v2/views",
		needs: views, handling: knowing[struct{}]((*API).listViews)},
	{method: "PUT", name: "put-view", path: "/api/public/v2/views/",
		needs: views, body: objectBody, handling: reading((*API).putView)},
	{method: "DELETE", name: "delete-view", path: "/api/public/v2/views/",
		needs: views, handling: plain((*API).deleteView)},
	// Targets of notices.
	{method: "GET", name: "list-deliveries", path: "/api/public/v2/targets/", suffix: "/deliveries",
		needs: targets, handling: reading((*API).listDeliveries)},
	{name: "test-target", path: "/api/public/v2/targets/", suffix: "/test",
		needs: targets, body: optionalBody, handling: plain((*API).testTarget)},
	{name: "replay-deliveries", path: "/api/public/v2/targets/", suffix: "/replay",
		needs: targets, body: optionalBody, handling: reading((*API).takeDeliveries)},
	{name: "discard-deliveries", path: "/api/public/v2/targets/", suffix: "/discard",
		needs: targets, body: optionalBody, handling: reading((*API).takeDeliveries)},
	{method: "GET", name: "list-targets", path: "/api/public/v2/targets",
		needs: targets, handling: knowing[struct{}]((*API).listTargets)},
	{method: "PUT", name: "put-target", path: "/api/public/v2/targets/",
		needs: targets, body: objectBody, handling: reading((*API).putTarget)},
	{method: "DELETE", name: "remove-target", path: "/api/public/v2/targets/",
		needs: targets, handling: removing(wire.Targets.RemoveTarget, "remove target",
			"The target is removed, with its queue.")},
	// Alerts.
	{method: "GET", name: "list-alerts", path: "/api/public/v2/alerts",
		needs: alerts, handling: knowing[struct{}]((*API).listAlerts)},
	{name: "test-alert", path: "/api/public/v2/alerts/test",
		needs: alerts, body: objectBody, handling: asking(wire.Alerts.TestAlert)},
	{method: "PUT", name: "put-alert", path: "/api/public/v2/alerts/",
		needs: alerts, body: objectBody, handling: reading((*API).putAlert)},
	{method: "DELETE", name: "remove-alert", path: "/api/public/v2/alerts/",
		needs: alerts, handling: removing(wire.Alerts.RemoveAlert, "remove alert", "The alert is removed.")},

	// Questions of sidecars to their server.
	{name: "sync-events", path: "/sync/events",
		needs: recorder, body: batchBody, takesExpired: true, handling: plain((*API).syncEvents)},
	{method: "GET", name: "sync-key", path: "/sync/key",
		takesExpired: true, handling: plain((*API).syncKey)},
	{name: "sync-heartbeat", path: "/sync/heartbeat",
		needs: fleet, body: objectBody, handling: plain((*API).heartbeat)},
	{method: "GET", name: "sync-fleet", path: "/sync/fleet",
		needs: fleet, handling: plain((*API).listFleet)},
	{method: "GET", name: "sync-changes", path: "/sync/changes",
		needs: changes, handling: reading((*API).syncChanges).keeping()},
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
