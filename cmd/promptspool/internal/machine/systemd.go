package machine

import (
	"context"
	"fmt"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// systemd gives up on a start after 90 s, unless it hears that the start takes longer.
const (
	startExtension = 30 * time.Second
	startTick      = 10 * time.Second
)

// ExtendStart asks systemd for more time, again and again, until ctx ends.
//
// Opening a large archive after a crash may take minutes. Where the process was not started by
// systemd, or by a unit without Type=notify, it does nothing.
func ExtendStart(ctx context.Context) {
	tick := time.NewTicker(startTick)
	defer tick.Stop()

	for {
		_, _ = daemon.SdNotify(false, fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", startExtension.Microseconds()))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// NotifyReady tells systemd that the process takes requests: units ordered after it may start.
func NotifyReady() { _, _ = daemon.SdNotify(false, daemon.SdNotifyReady) }

// NotifyStopping tells systemd that the process is stopping.
func NotifyStopping() { _, _ = daemon.SdNotify(false, daemon.SdNotifyStopping) }
