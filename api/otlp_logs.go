package api

import (
	"promptspool/api/otlp"
	"promptspool/api/wire"
)

// exportLogs takes the log records of an OTLP exporter that are about model calls. An app sends
// others with them, and its exporter would warn of each request if it were told what becomes of
// those.
func (a *API) exportLogs(c *call) error {
	x := exported{
		a:       a,
		c:       c,
		signal:  "logs",
		message: "ExportLogsServiceRequest",
	}

	return x.serve("rejectedLogRecords", func(form otlp.Form) (otlp.Refused, error) {
		return otlp.Logs(c.body, form, func(l otlp.Log) error {
			_, err := x.add(wire.KindLog, wire.LogRecordID(l.TraceID, l.SpanID, l.At), l.Body)
			return err
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
