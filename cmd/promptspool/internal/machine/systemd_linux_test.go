package machine

import (
	"context"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// However long an opening takes, systemd is asked for more before the time that it gave is over.
func TestALongStartIsExtendedAgainAndAgain(t *testing.T) {
	addr := &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"}
	systemd, err := net.ListenUnixgram("unixgram", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer systemd.Close()
	t.Setenv("NOTIFY_SOCKET", addr.Name)

	const long = 65 * time.Second // its messages fit into the socket
	synctest.Test(t, func(t *testing.T) {
		starting, started := context.WithCancel(t.Context())
		go ExtendStart(starting)
		time.Sleep(long)
		started()
	})

	granted := time.Duration(0)
	message := make([]byte, 256)
	for n := 0; granted < long; n++ {
		_ = systemd.SetReadDeadline(time.Now().Add(time.Minute))
		size, err := systemd.Read(message)
		if err != nil {
			t.Fatalf("after %d messages: %v", n, err)
		}
		text, isExtension := strings.CutPrefix(string(message[:size]), "EXTEND_TIMEOUT_USEC=")
		micros, err := strconv.Atoi(text)
		asked := time.Duration(n) * startTick
		if !isExtension || err != nil || n > 0 && asked >= granted {
			t.Fatalf("message %d at %s, of %s granted: %q", n, asked, granted, message[:size])
		}
		granted = asked + time.Duration(micros)*time.Microsecond
	}
}
