package metrics

import "github.com/prometheus/client_golang/prometheus"

// factory makes metrics and registers them; without a registry it only makes them.
type factory struct{ registry *prometheus.Registry }

func register[C prometheus.Collector](f factory, c C) C {
	if f.registry != nil {
		f.registry.MustRegister(c)
	}
	return c
}

func (f factory) counter(name, help string) prometheus.Counter {
	return register(f, prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help}))
}

func (f factory) counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return register(f, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
}

func (f factory) gauge(name, help string) prometheus.Gauge {
	return register(f, prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help}))
}

func (f factory) gaugeVec(name, help string, labels ...string) *prometheus.GaugeVec {
	return register(f, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels))
}

// secondsBuckets are the buckets of durations.
var secondsBuckets = []float64{
	.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10,
}

// histogram makes a histogram of durations.
func (f factory) histogram(name, help string) prometheus.Histogram {
	opts := prometheus.HistogramOpts{Name: name, Help: help, Buckets: secondsBuckets}
	return register(f, prometheus.NewHistogram(opts))
}

func (f factory) histogramVec(name, help string, labels ...string) *prometheus.HistogramVec {
	opts := prometheus.HistogramOpts{Name: name, Help: help, Buckets: secondsBuckets}
	return register(f, prometheus.NewHistogramVec(opts, labels))
}

// sizes makes a histogram of numbers of events, from 1 to 1024.
func (f factory) sizes(name, help string) prometheus.Histogram {
	opts := prometheus.HistogramOpts{Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(1, 2, 11)}
	return register(f, prometheus.NewHistogram(opts))
}
