package alerts

import (
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"promptspool/api/dashboard/number"
	"promptspool/api/filterline"
	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// notice returns what people are told of a value whose state has changed with the window.
func (w *watch) notice(value string, was, is wire.AlertValue) wire.Notice {
	n := w.ended(value)
	n.URL = w.address(value)
	// Texts, times and finite numbers.
	n.Data, _ = json.Marshal(map[string]any{
		"rule": w.AlertRule, "value": is.Value, "before": was.Value, "from": w.start, "to": w.end,
	})

	shown := number.Measure(w.Measure) + " " + number.Measured(w.Measure, is.Value)
	if is.Firing != nil {
		limit := w.When + " " + number.Measured(w.Measure, w.Threshold)
		if w.IsChange() {
			limit = "before " + number.Measured(w.Measure, was.Value)
		}
		shown += ", " + limit
		n.Type, n.Title = wire.NoticeAlertFiring, w.named(value)+": "+shown
	}
	n.Text = fmt.Sprintf("%s, in the %d min until %s. The alert fires for %s.",
		shown, w.Window, w.end.Format("2006-01-02 15:04 UTC"), number.Condition(w.AlertRule))

	return n
}

// ended returns the notice that an alert no longer fires for a value.
func (w *watch) ended(value string) wire.Notice {
	n := wire.Notice{
		ID:      wire.NewIDAt(w.end),
		Type:    wire.NoticeAlertResolved,
		Time:    w.end,
		Title:   w.named(value) + " is over",
		Labels:  map[string]string{"alertname": w.Name, "severity": w.Severity},
		Targets: w.Targets,
	}
	if w.By != "" {
		n.Labels["by"], n.Labels["value"] = w.By, rowcode.ShownValue(value)
	}

	return n
}

// named returns the alert's name with the value for which it fires.
func (w *watch) named(value string) string {
	if w.By == "" {
		return w.Name
	}
	return w.Name + " for " + rowcode.ShownValue(value)
}

// address returns the page of the calls of the window with a value.
func (w *watch) address(value string) string {
	received := func(o filterline.Operator, at time.Time) filterline.Term {
		return filterline.Where("received", "", at.UTC().Format(time.RFC3339)).With(o)
	}
	line := w.line.With(received(filterline.AtLeast, w.start), received(filterline.Below, w.end))
	if w.By != "" {
		line = line.With(filterline.Where("metadata", w.Key(), rowcode.ShownValue(value)))
	}

	return "/requests?filter=" + url.QueryEscape(line.String())
}
