package webhook

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/metrics/partstest"
)

// alertmanager starts one that tells a hook, and returns where it listens.
func alertmanager(t *testing.T, hook string) (address string) {
	t.Helper()
	dir := t.TempDir()
	config := fmt.Sprintf(`
route: {receiver: hook, group_by: ['...'], group_wait: 0s, group_interval: 1s}
receivers: [{name: hook, webhook_configs: [{url: %q}]}]
`, hook)
	path := filepath.Join(dir, "config.yml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "prometheus-alertmanager", "--config.file="+path, "--storage.path="+dir,
		"--web.listen-address=127.0.0.1:0", "--cluster.listen-address=")
	log, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})

	// It listens when it says so, and must not wait for who reads the rest.
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		if _, at, ok := strings.Cut(lines.Text(), `msg="Listening on" address=`); ok {
			go func() {
				for lines.Scan() {
				}
			}()
			return at
		}
	}
	t.Fatal("Alertmanager did not start")
	return ""
}

// Debian's Alertmanager takes a firing and its end, and tells both.
func TestAnAlertmanagerReallyFiresAndResolves(t *testing.T) {
	partstest.Need(t, "alertmanager")
	told := make(chan string, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body struct {
			Status string
			Alerts []struct {
				Labels, Annotations map[string]string
				GeneratorURL        string
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Alerts) != 1 {
			t.Errorf("%d alerts, %v", len(body.Alerts), err)
			return
		}
		a := body.Alerts[0]
		told <- strings.Join([]string{
			body.Status, a.Labels["alertname"], a.Labels["value"], a.Annotations["summary"], a.GeneratorURL,
		}, " | ")
	}))
	defer hook.Close()

	w := newWorld(t)
	s, kill := w.server()
	defer kill()
	s.client.Transport = newTransport(newDialer([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}))
	_, err := s.PutTarget(t.Context(), project, wire.TargetSettings{
		Name: "on-call", Kind: wire.TargetAlertmanager, URL: "http://" + alertmanager(t, hook.URL),
	})
	if err != nil {
		t.Fatal(err)
	}

	n := wire.Notice{
		Type: wire.NoticeAlertFiring, Title: "cost for ann: $12", URL: "/alerts",
		Labels: map[string]string{"alertname": "cost", "value": "ann"},
	}
	for _, want := range []string{
		"firing | cost | ann | cost for ann: $12 | https://spool.example/alerts",
		"resolved | cost | ann | cost for ann is over | https://spool.example/alerts",
	} {
		w.notice(n)
		select {
		case got := <-told:
			if got != want {
				t.Errorf("it tells %q, want %q", got, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("it did not tell %q: %+v", want, w.state(s, "on-call"))
		}
		n.Type, n.Title, n.Time = wire.NoticeAlertResolved, "cost for ann is over", time.Now()
	}
}
