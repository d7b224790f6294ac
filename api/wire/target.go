package wire

import (
	"context"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Types of notices.
const (
	NoticeAlertFiring       = "alert.firing"
	NoticeAlertResolved     = "alert.resolved"
	NoticeSidecarSilent     = "sidecar.silent"
	NoticeSidecarOnline     = "sidecar.online" // the end of a silence
	NoticeSidecarLosses     = "sidecar.losses"
	NoticeTemplatePublished = "template.published"
	NoticeLabelMoved        = "label.moved"
	NoticeKeyCreated        = "key.created"
)

// NoticeTypes are the types of notices that a target can subscribe to.
var NoticeTypes = []string{
	NoticeAlertFiring, NoticeAlertResolved, NoticeSidecarSilent, NoticeSidecarOnline, NoticeSidecarLosses,
	NoticeTemplatePublished, NoticeLabelMoved, NoticeKeyCreated,
}

// Notice is an event of a project that its targets are told.
type Notice struct {
	ID      string    `json:"id"`             // a UUIDv7, the same with each attempt to deliver it
	Type    string    `json:"type"`           // such as alert.firing
	Time    time.Time `json:"time"`           // of the event
	Project string    `json:"project"`        // the project's name, which the server fills in
	Title   string    `json:"title"`          // one line
	Text    string    `json:"text,omitempty"` // more about it, for people
	URL     string    `json:"url,omitempty"`  // of its page: a path of the server

	// Labels identify what it is about, by names that Prometheus takes. An alert's end has exactly the labels of its
	// beginning.
	Labels map[string]string `json:"labels,omitempty"`
	Data   json.RawMessage   `json:"data,omitempty"` // what else a program wants to know

	// Targets are the names of those that are told; without names, each that subscribes to the type.
	Targets []string `json:"targets,omitempty"`
}

// Condition returns the type of notice with which a lasting condition begins, and whether this one begins
// or ends it. It is "" for the notice of a moment.
func (n *Notice) Condition() (begins string, holds bool) {
	switch n.Type {
	case NoticeAlertFiring, NoticeSidecarSilent:
		return n.Type, true
	case NoticeAlertResolved:
		return NoticeAlertFiring, false
	case NoticeSidecarOnline:
		return NoticeSidecarSilent, false
	}
	return "", false
}

// Kinds of targets.
const (
	TargetWebhook      = "webhook"      // the form of Standard Webhooks, signed
	TargetSlack        = "slack"        // an incoming webhook of Slack, or what takes its form
	TargetAlertmanager = "alertmanager" // Prometheus Alertmanager, its API v2
)

// TargetsMax bounds the targets of a project.
const TargetsMax = 20

// TargetSettings are what people say about a target.
type TargetSettings struct {
	// The target's name, which is in the path.
	Name string `json:"name,omitempty" read:"name" jsonschema:"maxLength=64"`
	// The form in which it is told.
	Kind string `json:"kind" jsonschema:"enum=webhook,enum=slack,enum=alertmanager"`
	// Where it is. It may be left out when a target of the kind is replaced: that one's stays.
	URL string `json:"url,omitempty" jsonschema:"maxLength=2000"`
	// The types of notices that it is told; all without any.
	Types []string `json:"types,omitempty"`
}

var targetName = regexp.MustCompile(`^[a-z0-9._-]{1,64}$`)

func (t *TargetSettings) check(f *fields) {
	if !targetName.MatchString(t.Name) {
		f.fault("name", "must have 1 to 64 of a-z 0-9 . _ and -")
	}
	u, err := url.Parse(t.URL)
	if t.URL != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.Fragment != "") {
		f.fault("url", "must begin with https:// or http:// and a host")
	}
	for _, name := range t.Types {
		if !slices.Contains(NoticeTypes, name) {
			f.fault("types", "must be some of %s", strings.Join(NoticeTypes, ", "))
			break
		}
	}
}

// Target is where a project's notices go, with what became of them.
type Target struct {
	// The target's name.
	Name string `json:"name"`
	// The form in which it is told: webhook, slack or alertmanager.
	Kind string `json:"kind"`
	// Where it is, without what may be secret in it.
	URL string `json:"url"`
	// The types of notices that it is told; all without any.
	Types []string `json:"types"`
	// When it was made.
	CreatedAt time.Time `json:"created_at"`
	// The notices in its queue.
	Waiting int `json:"waiting"`
	// The notices that it refused, or that came to a full queue.
	Dead int `json:"dead_letters"`
	// The notices for which there was no space among the dead letters.
	Dropped int `json:"dead_letters_dropped"`
	// The notices that it took.
	Delivered int `json:"delivered"`
	// When it last took one.
	DeliveredAt *time.Time `json:"delivered_at,omitempty"`
	// The attempts that failed since.
	Tries int `json:"tries"`
	// Why the last attempt failed; absent after one that did not.
	Error string `json:"error,omitempty"`
	// When the next attempt is.
	RetryAt *time.Time `json:"retry_at,omitempty"`
}

// Takes reports whether the target is told a notice.
func (t *Target) Takes(n *Notice) bool {
	if len(n.Targets) > 0 {
		return slices.Contains(n.Targets, t.Name)
	}
	return len(t.Types) == 0 || slices.Contains(t.Types, n.Type)
}

// SealedTarget is a target as a database keeps it.
type SealedTarget struct {
	Target
	ID     string    `json:"id"`               // a UUIDv7: a queue belongs to it, not to the name
	Sealed []byte    `json:"sealed"`           // its URL and secret
	Holder string    `json:"holder,omitempty"` // the server that delivers at the moment
	DueAt  time.Time `json:"due_at,omitzero"`  // the end of its time, or of a pause

	Held     map[string]Notice `json:"held,omitempty"`     // what an Alertmanager is told again
	RepeatAt time.Time         `json:"repeat_at,omitzero"` // when
}

// IsDue reports whether a server may deliver now.
func (t *SealedTarget) IsDue(now time.Time) bool {
	return !t.DueAt.After(now) && (t.Waiting > 0 || len(t.Held) > 0 && !t.RepeatAt.After(now))
}

// EndPause lets a server try again without the pause after a failure.
func (t *SealedTarget) EndPause() {
	if t.Holder == "" {
		t.DueAt = time.Time{}
	}
}

// Delivery is a notice in a target's queue, or among its dead letters.
type Delivery struct {
	Notice Notice `json:"notice"`          // the one that the target was not told
	Error  string `json:"error,omitempty"` // why it is dead
}

// Attempt is what a server delivers for a target, and what became of it.
type Attempt struct {
	Target  SealedTarget
	About   []Notice // the first of the queue, or what an Alertmanager is told again
	Repeats bool     // it is told again

	Error   string    // why it failed; "" if it did not
	Dead    bool      // it is not tried again
	RetryAt time.Time // when it is; zero if it is not
}

// TargetList answers GET /api/public/v2/targets.
type TargetList struct {
	Success bool     `json:"success"`
	Items   []Target `json:"items"` // the project's targets, by name
}

// TargetPut answers PUT /api/public/v2/targets/{name}.
type TargetPut struct {
	Done
	// The secret that was made for a webhook. It is not shown again.
	Secret string `json:"secret,omitempty"`
}

// DeliveryQuery asks for a page of what a target was not told.
type DeliveryQuery struct {
	// Whether to list the dead letters, in place of the queue.
	Dead bool `json:"dead,omitempty"`
	// The id of the notice after which the page begins.
	After string `json:"after,omitempty" jsonschema:"maxLength=36"`
}

// DeliveryPage answers GET /api/public/v2/targets/{name}/deliveries.
type DeliveryPage struct {
	Success bool       `json:"success"`
	Items   []Delivery `json:"items"` // at most 200, the oldest first
}

// DeliveryChoice names what of a target is delivered again, or is not delivered any more.
type DeliveryChoice struct {
	// Whether to choose from the dead letters, in place of the queue.
	Dead bool `json:"dead,omitempty"`
	// The id of a notice; without it, the first 200.
	ID string `json:"id,omitempty" jsonschema:"maxLength=36"`

	Replay bool `json:"-"` // what is chosen goes into the queue again; else it is deleted
}

// DeliveriesTaken answers what replays or discards.
type DeliveriesTaken struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
	// How many. Call again until it is 0.
	Count int `json:"count"`
}

// Bounds of alerts.
const (
	AlertsMax        = 100  // of a project
	AlertValuesMax   = 1000 // of a metadata key that one window measures
	AlertFiringMax   = 100  // values for which one alert fires at a time
	AlertFiringsKept = 100  // firings of an alert that are listed
)

// AlertRule says which calls are measured, and when people are told.
type AlertRule struct {
	// The alert's name, which is in the path of a rule.
	Name string `json:"name,omitempty" read:"name" jsonschema:"maxLength=512"`
	// The calls that count, as a filter line without times and without words of prompts; all if it is empty.
	Filter string `json:"filter,omitempty" jsonschema:"maxLength=1000"`
	// A view that is saved for the project, by its name: its filter line counts, too.
	View string `json:"view,omitempty" jsonschema:"maxLength=100"`
	// The measure of them: requests, error_rate (0 to 1), cost (dollars), tokens, latency_p50, latency_p90,
	// latency_p95 or latency_p99 (seconds), or score.NAME, which is the mean of a score.
	Measure string `json:"measure" jsonschema:"maxLength=518"`
	// A key of the metadata, such as metadata.customer: each of its values is measured by itself.
	By string `json:"by,omitempty" jsonschema:"maxLength=1033"`
	// How many minutes a window has. Windows follow each other, from midnight UTC.
	Window int `json:"window_minutes,omitempty" jsonschema:"minimum=1,maximum=1440,default=5"`
	// Whether the value must be above or below the threshold, or rise or fall by more than that many percent
	// of the window before.
	When string `json:"when" jsonschema:"enum=above,enum=below,enum=rises,enum=falls"`
	// In the unit of what is measured, or in percent.
	Threshold *float64 `json:"threshold" jsonschema:"minimum=-1000000000000,maximum=1000000000000"`
	// In how many windows in a row this must be so.
	Windows int `json:"windows,omitempty" jsonschema:"minimum=1,maximum=100,default=1"`
	// The meaning of a window without calls: all is well, nothing changes, or the alert fires.
	NoData string `json:"no_data,omitempty" jsonschema:"enum=ok,enum=keep,enum=fire,default=ok"`
	// How bad it is; a label of the notice.
	Severity string `json:"severity,omitempty" jsonschema:"enum=info,enum=warning,enum=critical,default=warning"`
	// The names of the targets that are told; without names, each that subscribes to alerts.
	Targets []string `json:"targets,omitempty"`
}

// AlertMeasures are the words for what a rule measures.
var AlertMeasures = []string{
	"requests", "error_rate", "cost", "tokens", "latency_p50", "latency_p90", "latency_p95", "latency_p99",
	ScoreSort + "NAME",
}

// IsChange reports whether a window is compared with the one before.
func (r AlertRule) IsChange() bool { return r.When == "rises" || r.When == "falls" }

// Key returns the metadata key by whose values calls are measured; "" for all together.
func (r AlertRule) Key() string { return strings.TrimPrefix(r.By, ByMetadata) }

func (r *AlertRule) check(f *fields) {
	f.checkName(r.Name)
	score, ofScore := strings.CutPrefix(r.Measure, ScoreSort)
	if ofScore && score == "" || !ofScore && !slices.Contains(AlertMeasures, r.Measure) {
		f.fault("measure", "must be one of: %s", strings.Join(AlertMeasures, ", "))
	}
	if key, ok := strings.CutPrefix(r.By, ByMetadata); r.By != "" && (!ok || key == "") {
		f.fault("by", "must be %sKEY, such as %scustomer", ByMetadata, ByMetadata)
	}
	if r.By != "" && r.NoData == "fire" {
		f.fault("no_data", "must be ok or keep, because values of %s come and go", r.By)
	}

	switch x := r.Threshold; {
	case x == nil:
		f.fault("threshold", "is missing")
	case r.IsChange() && *x <= 0:
		f.fault("threshold", "must be more than 0: percent of the window before")
	case !r.IsChange() && r.Measure == "error_rate" && (*x < 0 || *x > 1):
		f.fault("threshold", "must be from 0 to 1: 0.05 is 5 percent")
	}
}

// Alert is a rule and what came of it.
type Alert struct {
	AlertRule
	State AlertState `json:"state"`           // what came of it
	Error string     `json:"error,omitempty"` // why it cannot be judged, such as a view that is gone
}

// AlertState is what the last window of an alert has shown.
type AlertState struct {
	Until time.Time `json:"until"` // the end of the last window
	// The last window by the value of the metadata key, or under "": of what fires, of what may soon and, of a
	// change, of what the next window is compared with.
	Values map[string]AlertValue `json:"values,omitempty"`
	// How many calls were not measured, because their metadata had too many values.
	LeftOut int64 `json:"left_out,omitempty"`
	// How often it has fired.
	Fired int `json:"fired"`
	// The last times, the newest first: at most 100.
	Firings []AlertFiring `json:"firings,omitempty"`
}

// AlertValue is what a window has shown of one value.
type AlertValue struct {
	Value    *float64   `json:"value"`              // null: there was nothing to measure
	Breaches int        `json:"breaches,omitempty"` // windows in a row that are as the rule says
	Firing   *time.Time `json:"firing,omitempty"`   // since when the alert fires; absent: it does not
}

// Firing returns the values for which the alert fires, sorted.
func (s AlertState) Firing() (values []string) {
	for value, v := range s.Values {
		if v.Firing != nil {
			values = append(values, value)
		}
	}
	slices.Sort(values)

	return values
}

// Begin counts a firing.
func (s *AlertState) Begin(f AlertFiring) {
	s.Fired++
	s.Firings = slices.Insert(s.Firings, 0, f)
	s.Firings = s.Firings[:min(len(s.Firings), AlertFiringsKept)]
}

// End notes when the firing for a value ended.
func (s *AlertState) End(by string, at time.Time) {
	for i := range s.Firings {
		if f := &s.Firings[i]; f.By == by && f.Until.IsZero() {
			f.Until = at
		}
	}
}

// AlertList answers GET /api/public/v2/alerts.
type AlertList struct {
	Success bool    `json:"success"`
	Items   []Alert `json:"items"` // sorted by name
}

// AlertTest answers POST /api/public/v2/alerts/test.
type AlertTest struct {
	Success bool          `json:"success"`
	Since   time.Time     `json:"since"`             // the beginning of the oldest window that was looked at
	Partial bool          `json:"partial,omitempty"` // there was no time, or no memory, for all of the 30 days
	Windows int           `json:"windows"`           // how many windows there were
	Fired   int           `json:"fired"`             // how often the rule would have fired
	Firings []AlertFiring `json:"firings"`           // the last of them, the newest first: at most 100
}

// AlertFiring is one time that an alert fired, or a rule would have.
type AlertFiring struct {
	By    string    `json:"by,omitempty"`   // the value of the metadata key
	At    time.Time `json:"at"`             // the end of the window with which it began
	Until time.Time `json:"until,omitzero"` // the end of the one with which it ended; absent: it has not
	Value *float64  `json:"value"`          // what that window has shown; null if nothing
	URL   string    `json:"url"`            // the page of its calls, as a path
}

// Alerts keeps the rules by which a project's calls are watched.
type Alerts interface {
	// Alerts returns the project's alerts, sorted by name.
	Alerts(ctx context.Context, id Identity) ([]Alert, error)

	// PutAlert makes an alert, or replaces the rule of its name. If that measures something else, what fires ends.
	// CodeInvalid for a view or a target that does not exist.
	PutAlert(ctx context.Context, id Identity, r AlertRule) error

	// RemoveAlert removes an alert, which ends what fires. CodeNotFound if there is none.
	RemoveAlert(ctx context.Context, id Identity, name string) error

	// TestAlert looks at how often a rule would have fired in the last 30 days, for a few seconds.
	TestAlert(ctx context.Context, id Identity, r AlertRule) (AlertTest, error)
}
