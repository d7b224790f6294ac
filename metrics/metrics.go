// Package metrics defines every metric that promptspool exports, with its help text. It
// is safe for concurrent use.
//
// A role makes one Metrics and passes it to its parts. There are no globals, so that a
// sidecar and a server can run in one process. A role exports only its own metrics,
// because an upstream_up of 0 would be a false alarm at a server. All metrics without a
// route label exist from the start.
package metrics

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics is every metric of one role. Its fields are never nil: metrics of the other
// role count, but are not exported.
type Metrics struct {
	Registry *prometheus.Registry

	// Both roles.
	HTTPRequests *prometheus.CounterVec   // by route and code
	HTTPSeconds  *prometheus.HistogramVec // by route
	Accepted     prometheus.Counter
	OTLPRefused  *prometheus.CounterVec // by signal
	OTLPDropped  *prometheus.CounterVec // by signal
	Refused      *prometheus.CounterVec // by reason
	DataFree     prometheus.Gauge
	DataFreeMin  prometheus.Gauge
	Connections  prometheus.Gauge
	// Connections that were cut or refused, by reason.
	ConnectionsCut *prometheus.CounterVec
	Panics         prometheus.Counter
	Shed           *prometheus.CounterVec // by reason
	BatchBytes     prometheus.Gauge
	// The configuration: how often, when, and in how many failed attempts.
	ConfigGeneration prometheus.Gauge
	ConfigLoaded     prometheus.Gauge
	ConfigFailures   prometheus.Counter
	Limited          *prometheus.CounterVec // by limit

	// A sidecar's spool.
	SpoolEvents         prometheus.Gauge
	SpoolBytes          prometheus.Gauge
	SpoolDiskBytes      prometheus.Gauge
	SpoolDiskBytesMax   prometheus.Gauge
	SpoolOldestSeconds  prometheus.Gauge
	SpoolOutageCapacity prometheus.Gauge
	SpoolAccepted       prometheus.Gauge // when the newest event was accepted
	SpoolAppendSeconds  prometheus.Histogram
	SpoolFsyncSeconds   prometheus.Histogram
	SpoolCommitEvents   prometheus.Histogram
	SpoolGaps           prometheus.Counter
	SpoolQuarantined    prometheus.Gauge
	SpoolUncertain      prometheus.Counter
	HeldEvents          prometheus.Gauge
	DeadLetters         prometheus.Gauge
	DeadLettersDropped  prometheus.Counter
	LanesFull           prometheus.Gauge

	// A sidecar's forwarder.
	ForwardSent        prometheus.Counter
	ForwardRetries     *prometheus.CounterVec // by reason
	ForwardPaused      prometheus.Gauge
	ForwardInFlight    prometheus.Gauge
	ForwardInFlightMax prometheus.Gauge
	ForwardDelivered   prometheus.Gauge // when the newest event that the server has was accepted
	UpstreamUp         prometheus.Gauge
	Redacted           *prometheus.CounterVec // by rule and action
	ClockSkew          prometheus.Gauge

	// A sidecar's templates.
	TemplateCache      *prometheus.CounterVec // by result
	TemplateAgeSeconds prometheus.Gauge

	// A server's archive.
	ArchiveEvents       *prometheus.CounterVec // by result
	ArchiveApplySeconds prometheus.Histogram
	ArchiveBatchEvents  prometheus.Histogram
	ArchiveQuerySeconds prometheus.Histogram
	ArchiveUp           prometheus.Gauge
	ArchiveConns        prometheus.Gauge
	ArchiveConnsMax     prometheus.Gauge
	ArchiveNodesAway    prometheus.Gauge
	ArchiveRecords      prometheus.Gauge
	ArchiveDiskBytes    prometheus.Gauge
	ArchiveQuarantined  prometheus.Gauge
	ArchiveUnreadable   prometheus.Gauge
	FleetSidecars       *prometheus.GaugeVec   // by state
	TargetDeliveries    *prometheus.CounterVec // by result
	TargetsWaiting      prometheus.Gauge
	TargetsDead         prometheus.Gauge
	WritesWaiting       prometheus.Gauge
	OrphanRequests      prometheus.Gauge
	OrphanEvents        prometheus.Gauge
}

// New makes the metrics of one role, "sidecar" or "server". They have their own registry,
// which also exports the Go runtime and the process.
func New(role, version string) *Metrics {
	r := prometheus.NewRegistry()
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)

	m := &Metrics{Registry: r}
	exported := factory{promauto.With(r)}
	m.both(exported, role, version)

	// Those of the other role are not exported.
	sidecar, server := factory{promauto.With(nil)}, exported
	if role == "sidecar" {
		sidecar, server = server, sidecar
	}
	m.spool(sidecar)
	m.forward(sidecar)
	m.archive(server)

	return m
}

func (m *Metrics) both(f factory, role, version string) {
	// Prometheus has no metrics of text, so the labels of a constant carry it.
	f.NewGauge(prometheus.GaugeOpts{
		Name:        "promptspool_build_info",
		Help:        "Always 1; its labels say what runs.",
		ConstLabels: prometheus.Labels{"role": role, "version": version},
	}).Set(1)

	m.HTTPRequests = f.counterVec("promptspool_http_requests_total",
		"Answers of the API, by route and status code.", "route", "code")
	m.HTTPSeconds = f.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "promptspool_http_seconds",
		Help:    "Time from a request's header to its answer, by route.",
		Buckets: secondsBuckets,
	}, []string{"route"})
	m.Accepted = f.counter("promptspool_accepted_events_total",
		"Events that were answered as accepted: by a sidecar once they are on its disk, by a server "+
			"once they are folded.")
	m.OTLPRefused = f.counters("promptspool_otlp_refused_total",
		"What OTLP exporters sent and was not kept because of a fault: spans and log records.",
		"signal", "spans", "logs", "metrics")
	m.OTLPDropped = f.counters("promptspool_otlp_dropped_total",
		"What OTLP exporters sent and was dropped because it is not about model calls: "+
			"spans of HTTP and database instrumentation, log records, and requests with metrics.",
		"signal", "spans", "logs", "metrics")
	m.Refused = f.counters("promptspool_refused_total",
		"Calls that were refused, by the error's code.",
		"reason", "not_found", "method_not_allowed", "too_large", "unsupported_encoding", "bad_json",
		"unauthorized", "forbidden", "invalid", "conflict", "too_many_requests", "not_implemented",
		"unavailable", "internal")

	m.Connections = f.gauge("promptspool_connections",
		"Connections to the API and to operations that are open.")
	m.ConnectionsCut = f.counters("promptspool_connections_cut_total",
		"Connections that were cut to make space for others, since they kept the process waiting "+
			"longest for a head, a body or the next request (slow), or refused because as many as allowed "+
			"were being answered (refused).",
		"reason", "slow", "refused")

	m.DataFree = f.gauge("promptspool_data_free_bytes", "Bytes that are free on the disk of the data folder.")
	m.DataFreeMin = f.gauge("promptspool_data_free_min_bytes",
		"Bytes below which promptspool_data_free_bytes must not fall, or writes are refused: --spool-free-min of a "+
			"sidecar, --free-min of a server. 0 for a server with PostgreSQL.")
	m.Panics = f.counter("promptspool_panics_total",
		"Handlers that panicked and were answered 500. Always worth a bug report.")

	m.Shed = f.counters("promptspool_shed_total",
		"Writes that were turned away with a moment to come back: the server held as many bytes as it "+
			"may (bytes), or as is fair to other keys (share), or had too much to write (queue, wait).",
		"reason", "bytes", "share", "queue", "wait")
	m.BatchBytes = f.gauge("promptspool_batch_bytes", "Bytes of batches that are being received or recorded.")

	m.ConfigGeneration = f.gauge("promptspool_config_generation",
		"How many configurations this process has taken over: 1 after the start, one more after each "+
			"reload.")
	m.ConfigLoaded = f.gauge("promptspool_config_loaded_timestamp_seconds",
		"When the configuration that is in force was taken over, in seconds since 1970.")
	m.ConfigFailures = f.counter("promptspool_config_reload_failures_total",
		"Reloads that were refused for a fault, and changed nothing.")

	m.Limited = f.counters("promptspool_limited_total",
		"Calls answered 429 because their key met a limit, by limit.",
		"limit", "calls", "bytes")
}

func (m *Metrics) spool(f factory) {
	m.SpoolEvents = f.gauge("promptspool_spool_events",
		"Events in the spool that the server has not acknowledged.")
	m.SpoolBytes = f.gauge("promptspool_spool_bytes", "Bytes of the events in the spool, before framing.")
	m.SpoolDiskBytes = f.gauge("promptspool_spool_disk_bytes",
		"Disk blocks that the spool's files occupy, in bytes.")
	m.SpoolDiskBytesMax = f.gauge("promptspool_spool_disk_bytes_max",
		"The bound of promptspool_spool_disk_bytes: --spool-bytes-max.")

	m.SpoolOldestSeconds = f.gauge("promptspool_spool_oldest_seconds",
		"Age of the oldest event in the spool; 0 when it is empty.")
	m.SpoolOutageCapacity = f.gauge("promptspool_spool_outage_capacity_seconds",
		"How long the server may stay away before the spool is full, at the present rate; +Inf when "+
			"nothing is written.")
	// 0 would be an alarm.
	m.SpoolOutageCapacity.Set(math.Inf(1))
	m.SpoolAccepted = f.gauge("promptspool_spool_accepted_timestamp_seconds",
		"When the newest event in the spool was accepted, in seconds since 1970; 0 before the first.")

	m.SpoolAppendSeconds = f.histogram("promptspool_spool_append_seconds",
		"Time that a write waits until it is on disk.")
	m.SpoolFsyncSeconds = f.histogram("promptspool_spool_fsync_seconds",
		"Time of one group commit with its fsync.")
	m.SpoolCommitEvents = f.sizes("promptspool_spool_commit_events", "Events that shared one commit.")

	// Two metrics, because only the first is an alarm: the other events were never
	// acknowledged.
	m.SpoolGaps = f.counter("promptspool_spool_gaps_total",
		"Events that were acknowledged to the app and can no longer be read. Anything above 0 is lost "+
			"data.")
	m.SpoolUncertain = f.counter("promptspool_spool_uncertain_total",
		"Events of the newest commit that were missing after a crash and most likely had not been "+
			"acknowledged to the app.")
	m.SpoolQuarantined = f.gauge("promptspool_spool_quarantined",
		"Files and folders in the spool's quarantine, which nothing removes.")

	m.HeldEvents = f.gauge("promptspool_held_events",
		"Events set aside because the server refuses their key.")
	m.DeadLetters = f.gauge("promptspool_dead_letters",
		"Events set aside because the server refuses their content, or because their record is at a limit.")
	m.DeadLettersDropped = f.counter("promptspool_dead_letters_dropped_total",
		"Dead letters whose record was at a limit, and that were dropped because the share of their key, "+
			"the lanes or the disk had no more space.")
	m.LanesFull = f.gauge("promptspool_lanes_full",
		"1 while refused events have to stay in the spool, because held events and dead letters have "+
			"no more space.")
}

func (m *Metrics) forward(f factory) {
	m.ForwardSent = f.counter("promptspool_forward_sent_total", "Events that the server has acknowledged.")
	m.ForwardRetries = f.counters("promptspool_forward_retries_total",
		"Batches that have to be sent again, by reason.",
		"reason", "network", "status", "foreign", "answer", "later")

	m.ForwardPaused = f.gauge("promptspool_forward_paused",
		"1 while events of some key wait for a person: the server's answers break the contract, it "+
			"refuses many events, or what it refuses cannot be set aside.")
	m.ForwardInFlight = f.gauge("promptspool_forward_in_flight_batches",
		"Batches that are on their way to the server.")
	m.ForwardInFlightMax = f.gauge("promptspool_forward_in_flight_batches_max",
		"How many batches may be on their way at the same time.")
	m.ForwardDelivered = f.gauge("promptspool_forward_delivered_timestamp_seconds",
		"When the newest of the events that the server has was accepted, in seconds since 1970; 0 "+
			"before the first.")

	m.Redacted = f.counterVec("promptspool_redacted_total",
		"Values that were redacted before they were spooled, by rule and action.", "rule", "action")
	for _, rule := range []string{
		"email", "phone", "card", "bearer_token", "provider_key", "pattern", "path",
	} {
		for _, action := range []string{"mask", "hash", "drop"} {
			m.Redacted.WithLabelValues(rule, action)
		}
	}

	m.UpstreamUp = f.gauge("promptspool_upstream_up",
		"1 if the server itself answered the last batch; 0 before the first.")
	m.ClockSkew = f.gauge("promptspool_clock_skew_seconds",
		"How far this sidecar's clock is ahead of the server's, negative if it is behind; 0 before the "+
			"first answer. Beyond 5 the server orders its writes by their arrival.")

	m.TemplateCache = f.counters("promptspool_template_cache_total",
		"Template fetches, by how they were answered.",
		"result", "hit", "stale", "miss", "error")
	m.TemplateAgeSeconds = f.gauge("promptspool_template_cache_age_seconds",
		"How long ago the server last told of changed templates, of the project for which that is "+
			"longest; 0 while all are connected.")
}

func (m *Metrics) archive(f factory) {
	m.ArchiveEvents = f.counters("promptspool_archive_events_total",
		"Events that came to the archive, by result.",
		"result", "accepted", "duplicate", "invalid", "later")
	m.ArchiveApplySeconds = f.histogram("promptspool_archive_apply_seconds",
		"Time to fold one batch and make it durable.")
	m.ArchiveBatchEvents = f.sizes("promptspool_archive_batch_events", "Events that were folded together.")

	m.ArchiveQuerySeconds = f.histogram("promptspool_archive_query_seconds",
		"Time of one search, suggestion or statistics in the database.")
	// At 0 from here on, and set once the database was asked.
	m.ArchiveUp = f.gauge("promptspool_archive_up", "1 while the server's database answers.")
	m.ArchiveConns = f.gauge("promptspool_archive_connections",
		"Connections to the database that are in use at the moment; 0 for Badger.")
	m.ArchiveConnsMax = f.gauge("promptspool_archive_connections_max",
		"How many connections to the database this server may use; 0 for Badger.")

	m.ArchiveNodesAway = f.gauge("promptspool_archive_nodes_away",
		"Workers of the database that do not answer, where it is spread over several by Citus; else 0.")
	m.ArchiveRecords = f.gauge("promptspool_archive_records", "Requests of all projects. Spans that are "+
		"no calls, and what waits for a request, are not among them.")
	m.ArchiveDiskBytes = f.gauge("promptspool_archive_disk_bytes",
		"Disk blocks that the archive's files occupy, in bytes.")
	m.ArchiveQuarantined = f.gauge("promptspool_archive_quarantined",
		"Files in the archive's quarantine: the disk could not read all of them. Nothing removes them.")
	m.ArchiveUnreadable = f.gauge("promptspool_archive_unreadable_bytes",
		"Bytes of the archive's files that this process could not read from the disk. Their content "+
			"is lost.")

	m.FleetSidecars = f.NewGaugeVec(prometheus.GaugeOpts{
		Name: "promptspool_fleet_sidecars",
		Help: "Sidecars that were heard within a month: alive, or silent for longer than a minute.",
	}, []string{"state"})
	// Both exist from the start: a series that appears with its first value has no rate.
	m.FleetSidecars.WithLabelValues("alive")
	m.FleetSidecars.WithLabelValues("silent")

	m.TargetDeliveries = f.counters("promptspool_target_deliveries_total",
		"Attempts of this server to deliver a notice to a target, by result. What failed is tried again; what the "+
			"target keeps refusing is a dead letter (dead).",
		"result", "delivered", "failed", "dead")
	m.TargetsWaiting = f.gauge("promptspool_target_waiting_notices",
		"Notices that wait for the targets of all projects.")
	m.TargetsDead = f.gauge("promptspool_target_dead_letters",
		"Notices that the targets of all projects refused, or that came to a full queue.")
	m.WritesWaiting = f.gauge("promptspool_archive_waiting_writes",
		"Batches and direct writes that wait for their key's turn at the archive.")
	m.OrphanRequests = f.gauge("promptspool_orphan_requests",
		"Requests that have not come, though scores, metadata or links of theirs have.")
	m.OrphanEvents = f.gauge("promptspool_orphan_events",
		"Events that wait for their request. They join it when it comes.")
}

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
