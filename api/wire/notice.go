package wire

import (
	"encoding/json"
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
	ID      string    `json:"id"` // a UUIDv7, the same with each attempt to deliver it
	Type    string    `json:"type"`
	Time    time.Time `json:"time"`
	Project string    `json:"project"` // the project's name, which the delivery fills in
	Title   string    `json:"title"`   // one line
	Text    string    `json:"text,omitempty"`
	URL     string    `json:"url,omitempty"` // of the page; it may begin with the path

	// Labels identify what it is about. An alert's end has exactly the labels of its beginning.
	Labels map[string]string `json:"labels,omitempty"`
	Data   json.RawMessage   `json:"data,omitempty"` // what else a program wants to know

	// Targets are the names of those that are told; without names, each that subscribes to the type.
	Targets []string `json:"targets,omitempty"`
}
