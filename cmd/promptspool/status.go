package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/api"
	"promptspool/api/client"
	"promptspool/api/dashboard/number"
	"promptspool/api/ops"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/datafolder"
	"promptspool/cmd/promptspool/internal/print"
	"promptspool/spool/archive"
	"promptspool/spool/disk"
	"promptspool/spool/queue"
)

func statusCommand() *cli.Command {
	data := config.TextFlag("data", "", "the data `folder` of a running sidecar or server, or that of up for both"+
		config.UpDataHere+"; without one, the server at --url is asked for the project's sidecars")
	return config.Command("status", "show the status of a sidecar or server, or list a project's sidecars",
		status, []cli.Flag{data, config.ColumnsFlag()}, config.RemoteFlags())
}

func status(c *cli.Context) error {
	asksServer := c.IsSet("url") || c.IsSet("key") || c.IsSet("context")
	if data := config.DataHere(c); data != "" && (!asksServer || c.IsSet("data")) {
		if datafolder.IsUp(data) {
			return statusBeside(c, data, datafolder.UpRoles...)
		}
		return statusBeside(c, data, "")
	}
	cl, id, err := config.Read(c).Remote()
	if err != nil {
		return err
	}
	fleet, err := cl.Fleet(c.Context, id)
	if err != nil {
		return err
	}
	return print.Output(c, fleet, func(t *print.Table) { describeFleet(t, fleet) })
}

// statusBeside asks the process that runs on a data folder, about each role whose folder is within it. It fails with
// the reason if one is not ready, so that `status` serves as a health check where nothing can ask /readyz.
func statusBeside(c *cli.Context, data string, roles ...string) error {
	var shown any
	var parts []described
	all := map[string]described{}
	var ready error
	for _, role := range roles {
		folder := filepath.Join(data, role)
		s, err := askStatus(c, folder)
		if err != nil {
			return err
		}
		all[role], shown = s, s
		parts = append(parts, s)
		ready = errors.Join(ready, ops.Control(c.Context, folder, "GET", "/readyz", nil, &struct{}{}))
	}
	if len(roles) > 1 {
		shown = all
	}

	err := print.Output(c, shown, func(t *print.Table) {
		for i, s := range parts {
			if i > 0 {
				t.Row()
			}
			s.describe(t)
		}
	})
	return errors.Join(err, ready)
}

// described is the status of a process, which people read as a table.
type described interface{ describe(*print.Table) }

// askStatus asks the process on a data folder.
func askStatus(c *cli.Context, data string) (described, error) {
	var told json.RawMessage
	if err := ops.Control(c.Context, data, "GET", "/status", nil, &told); err != nil {
		return nil, err
	}
	// The fields that both roles have are alike.
	var sidecar sidecarStatus
	err := json.Unmarshal(told, &sidecar)
	if err != nil || sidecar.Role == "sidecar" {
		return sidecar, err
	}
	var s serverStatus
	err = json.Unmarshal(told, &s)
	return s, err
}

func (s serverStatus) describe(t *print.Table) {
	t.Row("server", s.Name+", version "+s.Version)
	t.Row("up", print.Age(time.Since(s.StartedAt)))
	t.Row("archive", s.Archive)
	if s.Away != "" {
		t.Row("", "It does not answer: "+s.Away)
		return
	}

	if len(s.NodesAway) == 0 {
		t.Row("requests", fmt.Sprintf("%s, %s of disk",
			humanize.Comma(int64(s.Records)), humanize.IBytes(uint64(s.DiskBytes))))
	} else { // they could not be counted
		t.Row("", "These nodes do not answer: "+strings.Join(s.NodesAway, ", "))
	}
	t.Row("sidecars", fmt.Sprintf("%d online, %d offline (listed by `promptspool status --url URL`)",
		s.Alive, s.Sidecars-s.Alive))
	if len(s.NodesAway) == 0 {
		t.Row("orphans", fmt.Sprintf("%s for %s not received yet",
			print.Quantity(s.Orphans.Events, "event"), print.Quantity(s.Orphans.Requests, "request")))
	}
	describeDrops(t, "", s.DroppedToday)
}

func (s sidecarStatus) describe(t *print.Table) {
	h := s.heartbeat()
	t.Row("sidecar", s.Name+", version "+s.Version)
	t.Row("id", s.ID)
	t.Row("up", print.Age(time.Since(s.StartedAt)))
	t.Row("server", s.Upstream)
	if s.Waits != "" {
		t.Row("", "Events wait: "+s.Waits)
	}
	t.Row("clock", number.ClockOffset(s.ClockAhead))
	t.Row("queued", fmt.Sprintf("%s, %s",
		print.Quantity(h.BacklogEvents, "event"), humanize.IBytes(uint64(h.BacklogBytes))))
	t.Row("disk", fmt.Sprintf("%s of %s",
		humanize.IBytes(uint64(s.Spool.DiskBytes)), humanize.IBytes(uint64(s.Spool.BytesMax))))
	t.Row("oldest", oldestText(h))
	t.Row("held", print.Explained(h.HeldEvents, "event", "because the server rejects the key"))
	t.Row("dead letters", print.DeadLetters(h.DeadLetters, h.Dropped))
	t.Row("lost", print.Explained(h.LostEvents, "event", "by damage to the disk"))
	describeDrops(t, "", s.DroppedToday)
}

// describeDrops shows what OpenTelemetry exporters sent today and was not kept.
func describeDrops(t *print.Table, where string, drops []wire.Drop) {
	for _, d := range drops {
		t.Row(fmt.Sprintf("%s%s dropped today: %s", where, print.Quantity(d.Count, d.What), d.Why))
	}
}

func describeFleet(t *print.Table, fleet wire.Fleet) {
	describeDrops(t, "this server: ", fleet.DroppedToday)
	if len(fleet.Items) == 0 {
		t.Row("No sidecar of this project was heard within a month.")
		return
	}
	spare := []string{"ID", "VERSION", "UP"}
	if slices.ContainsFunc(fleet.Items, func(s wire.FleetSidecar) bool { return s.SameName }) {
		spare = spare[1:]
	}
	t.Head("SIDECAR", "STATE", "SEEN", "VERSION", "UP", ">WAITING", "OLDEST", ">HELD", ">DEAD", ">LOST", "CLOCK", "ID").
		Spare(spare...)
	for _, s := range fleet.Items {
		state, up := "online", print.Age(s.LastSeen.Sub(s.StartedAt))
		if !s.Alive {
			state, up = "offline", "-"
		}
		t.Row(s.Name, state, print.Age(time.Since(s.LastSeen))+" ago", s.Version, up,
			humanize.Comma(s.BacklogEvents), oldestText(s.Heartbeat), s.HeldEvents,
			print.DeadLetters(s.DeadLetters, s.Dropped), s.LostEvents, number.ClockOffset(s.ClockAhead), s.ID)
	}

	for _, s := range fleet.Items {
		name := s.Name
		if s.SameName {
			name += " " + s.ID
		}
		if len(s.Needs) > 0 {
			t.Row(name + " needs attention: " + strings.Join(s.Needs, " "))
		}
		// Those of a sidecar that is offline may be of another day.
		if s.Alive {
			describeDrops(t, name+": ", s.DroppedToday)
		}
	}
}

func oldestText(h wire.Heartbeat) string {
	if h.BacklogEvents == 0 {
		return "-"
	}
	return print.Age(time.Duration(h.OldestSeconds * float64(time.Second)))
}

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
	if ahead, _, known := upstream.Skew(); known {
		return new(ahead.Seconds())
	}
	return nil
}

// serverStatus is what /statusz and the control socket of a server return.
type serverStatus struct {
	Role      string          `json:"role"`
	Version   string          `json:"version"`
	Name      string          `json:"name"`
	Archive   string          `json:"archive"`            // badger, or a postgres:// without its password
	Away      string          `json:"archive_away"`       // why the database does not answer; "" while it does
	NodesAway []string        `json:"archive_nodes_away"` // of several; what is on them is away
	StartedAt time.Time       `json:"started_at"`
	Records   uint64          `json:"records"`    // of all accounts
	DiskBytes int64           `json:"disk_bytes"` // blocks of the archive's files
	Orphans   archive.Orphans `json:"orphans"`    // of all accounts
	Sidecars  int             `json:"sidecars"`   // of all accounts that were heard within a month
	Alive     int             `json:"sidecars_alive"`

	DroppedToday []wire.Drop `json:"dropped_today"` // of all accounts, by this server
}

// fleetAndDrops is an account's fleet, with what this server itself dropped.
type fleetAndDrops struct {
	database
	drops *api.DropCounter
}

// Fleet lists the account's sidecars.
func (f fleetAndDrops) Fleet(ctx context.Context, id wire.Identity) (wire.Fleet, error) {
	fleet, err := f.database.Fleet(ctx, id)
	fleet.DroppedToday = f.drops.Of(id.Account)

	return fleet, err
}

// statusPatience is how long a status waits for the database.
const statusPatience = 5 * time.Second

// statusOfServer reads the database. Values that cannot be read count as none: the reads
// that users make log it.
func statusOfServer(name string, started time.Time, at opened, health *dbHealth, drops *api.DropCounter) serverStatus {
	s := serverStatus{
		Role:      "server",
		Version:   version,
		Name:      name,
		StartedAt: started,
		Archive:   at.name,
		NodesAway: []string{},

		DroppedToday: drops.Of(""),
	}
	if err := health.err(); err != nil {
		s.Away = err.Error()
		return s
	}

	ctx, cancel := context.WithTimeout(context.Background(), statusPatience)
	defer cancel()
	s.Sidecars, s.Alive, _ = at.db.FleetOfAll(ctx)
	if at.remote != nil {
		if away, _ := at.remote.NodesAway(ctx); len(away) > 0 {
			// The statements below ask all nodes, and would wait in vain for the rest of
			// ctx.
			s.NodesAway = away
			return s
		}
	}

	size, _ := at.db.Size(ctx)
	s.Records, s.DiskBytes, s.Orphans = size.Records, size.DiskBytes, size.Orphans

	return s
}
