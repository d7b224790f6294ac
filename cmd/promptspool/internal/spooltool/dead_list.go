package spooltool

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"promptspool/api/ops"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

// deadRow is one event in the list.
type deadRow struct {
	Seq       uint64    `json:"sequence"`
	Lane      string    `json:"lane"`
	Kind      string    `json:"kind"`
	RequestID string    `json:"request_id"`
	Cause     string    `json:"cause,omitempty"` // "limit" if the event's record is at a limit
	Reason    string    `json:"reason"`
	MovedAt   time.Time `json:"moved_at"`
}

func newDeadRow(e ops.SpoolEvent) deadRow {
	var event struct {
		Kind      string `json:"kind"`
		RequestID string `json:"request_id"`
	}
	_ = json.Unmarshal(e.Data, &event) // damaged data is listed without a kind

	return deadRow{
		Seq:       e.Seq,
		Lane:      e.Lane,
		Kind:      event.Kind,
		RequestID: event.RequestID,
		Cause:     e.Cause,
		Reason:    cmp.Or(e.Error, e.Reason), // that it cannot be read matters more
		MovedAt:   e.MovedAt,
	}
}

func listDead(c *cli.Context) error {
	rows := []deadRow{}
	err := deadEvents(c, func(e ops.SpoolEvent) error {
		rows = append(rows, newDeadRow(e))
		return nil
	})
	if err != nil {
		return err
	}

	return print.Output(c, map[string][]deadRow{"items": rows}, func(t *print.Table) {
		t.Head("SEQUENCE", "LANE", "KIND", "REQUEST ID", "@MOVED", "CAUSE", "REASON")
		for _, r := range rows {
			t.Row(r.Seq, r.Lane, r.Kind, r.RequestID, t.Moment(r.MovedAt), cmp.Or(r.Cause, "-"), r.Reason)
		}
	})
}

func showDead(c *cli.Context) error {
	seqs, err := readSequences(c)
	if err != nil {
		return err
	}
	if len(seqs) != 1 {
		return config.Usagef(c, "give the sequence of one event; `promptspool dead list` shows them")
	}

	event, err := findDead(c, seqs[0])
	if err != nil {
		return err
	}
	if event.Error != "" {
		return errors.New(event.Error)
	}

	shown := struct {
		deadRow
		Event json.RawMessage `json:"event"`
	}{newDeadRow(event), event.Data}
	if !json.Valid(event.Data) {
		shown.Event, _ = json.Marshal(string(event.Data)) // a string always encodes
	}

	return print.Output(c, shown, func(t *print.Table) {
		t.Row("sequence", event.Seq)
		t.Row("lane", event.Lane)
		t.Row("moved", t.Moment(event.MovedAt))
		t.Known("cause", event.Cause)
		t.Row("reason", event.Reason)
		t.Row()
		t.Row(string(event.Data))
	})
}

// findDead returns the event with this sequence.
func findDead(c *cli.Context, seq uint64) (ops.SpoolEvent, error) {
	var found ops.SpoolEvent
	err := deadEvents(c, func(e ops.SpoolEvent) error {
		if e.Seq == seq {
			found = e
		}
		return nil
	})
	if err == nil && found.Seq == 0 {
		err = fmt.Errorf("no event %d is held or dead; `promptspool dead list` shows them", seq)
	}
	return found, err
}
