package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"promptspool/api/client"
	"promptspool/api/wire"
	"promptspool/spool/disk"
	"promptspool/spool/queue"
)

// sidecarStatus is what /statusz and the control socket of a sidecar tell.
type sidecarStatus struct {
	Role      string    `json:"role"`
	ID        string    `json:"id"`
	Version   string    `json:"version"`
	Name      string    `json:"name"`
	StartedAt time.Time `json:"started_at"`
	Upstream  string    `json:"upstream"`
	Away      bool      `json:"away"`            // the last attempt to deliver found no server
	Waits     string    `json:"waits,omitempty"` // why events are not delivered
	// ClockAhead is by how many seconds this clock is ahead of the server's; null before the first answer.
	ClockAhead *float64     `json:"clock_ahead_seconds"`
	Spool      queue.Status `json:"spool"`

	DroppedToday []wire.Drop `json:"dropped_today"`
}

// heartbeat is what the server is told of it.
func (s sidecarStatus) heartbeat() wire.Heartbeat {
	h := wire.Heartbeat{
		ID: s.ID, Name: s.Name, Version: s.Version, StartedAt: s.StartedAt,
		BacklogEvents: int64(s.Spool.Events), BacklogBytes: s.Spool.Bytes, HeldEvents: int64(s.Spool.Held),
		DeadLetters: int64(s.Spool.Dead), Dropped: int64(s.Spool.Dropped), LostEvents: int64(s.Spool.Gaps),
		ClockAhead: s.ClockAhead, DroppedToday: s.DroppedToday,
	}
	if !s.Spool.Oldest.IsZero() {
		h.OldestSeconds = max(0, time.Since(s.Spool.Oldest).Seconds())
	}
	return h
}

// idOf reads the sidecar's id from its data folder, where it is made once. One that cannot be read is made
// again: it only names a line of the fleet.
func idOf(data string) (string, error) {
	path := filepath.Join(data, "id")
	text, err := os.ReadFile(path)
	if id, bad := wire.ParseID(strings.TrimSpace(string(text))); err == nil && bad == nil {
		return id, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) && !disk.IsUnreadable(err) {
		return "", fmt.Errorf("the sidecar's id: %w", err)
	}

	id := wire.NewID()
	if err := os.WriteFile(path, []byte(id+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("the sidecar's id: %w", err)
	}
	return id, nil
}

// clockAhead is by how many seconds the clock is ahead of the server's; nil before its first answer.
func clockAhead(upstream *client.Client) *float64 {
	ahead, _, known := upstream.Skew()
	if !known {
		return nil
	}
	seconds := ahead.Seconds()
	return &seconds
}
