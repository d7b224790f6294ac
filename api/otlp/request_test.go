package otlp_test

import (
	"strings"
	"testing"

	"promptspool/api/otlp"
)

func TestTheKindOfARequestShowsInIt(t *testing.T) {
	for _, p := range payloads(t, "") {
		want := otlp.Spans
		if strings.HasSuffix(p.Path, "/v1/logs") {
			want = otlp.LogRecords
		}
		if strings.HasSuffix(p.Path, "/spans-bulk") {
			continue
		}
		if kind := otlp.KindOf(p.Body, p.Form); kind != want {
			t.Errorf("%s to %s is of kind %q", p.Name, p.Path, kind)
		}
	}

	gauge := message(5, message(1, []byte("\x11\x01\x02\x03\x04\x05\x06\x07\x08")))
	metrics := message(1, message(2, message(2, message(1, []byte("requests")), gauge)))
	for _, c := range []struct {
		body string
		form otlp.Form
		want otlp.Kind
	}{
		{`{"x":[1],"resource_metrics":[]}`, otlp.JSON, otlp.Metrics},
		{` {"x":{"resourceLogs":[]},"resourceSpans":[]}`, otlp.JSON, otlp.Spans},
		{`{"resourceSpans"`, otlp.JSON, ""},
		{`[]`, otlp.JSON, ""},
		{string(metrics), otlp.Protobuf, ""}, // their times are in data points
		{"", otlp.Protobuf, ""},
		{"\x0a\xff", otlp.Protobuf, ""},
	} {
		if kind := otlp.KindOf([]byte(c.body), c.form); kind != c.want {
			t.Errorf("%q is of kind %q, want %q", c.body, kind, c.want)
		}
	}
}
