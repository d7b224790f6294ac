package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// factory makes metrics, and registers them if it has a registry.
type factory struct{ promauto.Factory }

func (f factory) counter(name, help string) prometheus.Counter {
	return f.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func (f factory) counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return f.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// counters makes counters by one label, those of its values at zero: a rate needs the zero before the first event.
func (f factory) counters(name, help, label string, values ...string) *prometheus.CounterVec {
	v := f.counterVec(name, help, label)
	for _, value := range values {
		v.WithLabelValues(value)
	}
	return v
}

func (f factory) gauge(name, help string) prometheus.Gauge {
	return f.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

// secondsBuckets are the buckets of durations.
var secondsBuckets = []float64{
	.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10,
}

// histogram makes a histogram of durations.
func (f factory) histogram(name, help string) prometheus.Histogram {
	return f.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: secondsBuckets})
}

// sizes makes a histogram of numbers of events, from 1 to 1024.
func (f factory) sizes(name, help string) prometheus.Histogram {
	buckets := prometheus.ExponentialBuckets(1, 2, 11)
	return f.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
}
