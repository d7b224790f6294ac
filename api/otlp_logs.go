package api

import (
	"promptspool/api/otlp"
)

// exportLogs refuses the log records of an OTLP exporter that are about model calls: it must not
// send them again, and must not take them for stored either. An app sends others with them, and its
// exporter would warn of each request if it were told what becomes of those.
func (a *API) exportLogs(c *call) error {
	x := exported{
		a:       a,
		c:       c,
		signal:  "logs",
		message: "ExportLogsServiceRequest",
	}

	return x.serve("rejectedLogRecords", func(form otlp.Form) (otlp.Refused, error) {
		return otlp.Logs(c.body, form, func(otlp.Log) error {
			x.refused.Spans++
			x.refused.Reason = "promptspool keeps spans; it does not keep log records. " +
				"Have the messages recorded on spans, for example with " +
				"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY"
			return nil
		})
	})
}

// exportMetrics discards the metrics of an OTLP exporter, which would log errors after a 404.
func (a *API) exportMetrics(c *call) error {
	form, err := otlpForm(c.ctx, c.body)
	if err != nil {
		return err
	}
	a.c.Metrics.OTLPRefused.WithLabelValues("metrics").Inc()
	c.answerOTLP(form, otlp.Refused{}.Answer(form, ""))

	return nil
}
