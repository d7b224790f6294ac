//go:build linux

package durability

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

func TestABackupUnderLoadHoldsEveryWriteThatWasAcknowledged(t *testing.T) {
	t.Parallel()
	server := harness.StartPlainServer(t, harness.FreePort(t))
	var mu sync.Mutex

	var acked []string
	stop := make(chan struct{})
	var writers sync.WaitGroup
	enough := make(chan struct{})

	for range 4 {
		writers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				r, err := server.Try("POST", "/rest/track-request", harness.Chat(), "X-API-KEY", harness.AdminKey)
				span := harness.NewSpan([16]byte{1})
				sent, err2 := server.Try("POST", "/v1/traces",
					harness.ExportOf([]*harness.SpanSent{span}, 500, harness.OTLPJSON),
					"X-API-KEY", harness.AdminKey, "Content-Type", harness.OTLPJSON)
				if err = errors.Join(err, err2); err != nil || r.Status != 200 || sent.Status != 200 {
					t.Errorf("a write: %d, %d %v", r.Status, sent.Status, err)
					return
				}
				mu.Lock()
				acked = append(acked, r.JSON["request_id"].(string), span.RecordID())
				if len(acked) == 200 {
					close(enough)
				}

				mu.Unlock()
			}
		})
	}
	// The backup is made while they write.
	<-enough
	mu.Lock()
	before := append([]string(nil), acked...)
	mu.Unlock()

	file := filepath.Join(t.TempDir(), "backup")
	out, errs, code := harness.RunWith(t, nil, "backup", "--data", server.Data, file)
	if code != 0 || !strings.Contains(out, "verified") {
		t.Fatalf("backup: %d %s%s", code, out, errs)
	}
	close(stop)
	writers.Wait()
	out, errs, code = harness.RunWith(t, nil, "archive", "check", "--data", server.Data)
	if code != 0 || !strings.HasPrefix(out, "Sound: ") {
		t.Errorf("archive check of a running server: %d %s%s", code, out, errs)
	}
	_, errs, code = harness.RunWith(t, nil, "backup", "--data", server.Data, file)
	if code != 1 || !strings.Contains(errs, "already exists") {
		t.Errorf("a backup over another: %d %s", code, errs)
	}

	elsewhere := t.TempDir()
	out, errs, code = harness.RunWith(t, nil, "restore", "--data", elsewhere, file)
	if code != 0 || !strings.Contains(out, "verified") {
		t.Fatalf("restore: %d %s%s", code, out, errs)
	}
	if out, errs, code := harness.RunWith(t, nil, "archive", "check", "--data", elsewhere); code != 0 {
		t.Errorf("archive check of a stopped server: %d %s%s", code, out, errs)
	}

	restored := harness.Launch(t, elsewhere, "127.0.0.1:0", "server")
	for _, id := range before {
		if r := restored.Get("/api/public/v2/requests/" + id); r.Status != 200 {
			t.Errorf("%s was acknowledged before the backup and is not in it: %d", id, r.Status)
		}
	}
	_, errs, code = harness.RunWith(t, nil, "restore", "--data", elsewhere, file)
	if code != 1 || !strings.Contains(errs, "already exists") {
		t.Errorf("a restore over an archive: %d %s", code, errs)
	}
}

func TestABackupThatCannotBeIsNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "backup")
	_, errs, code := harness.RunWith(t, nil, "backup", "--data", dir, file)
	if code != 2 || !strings.Contains(errs, "holds no archive") {
		t.Errorf("of nothing: %d %s", code, errs)
	}

	if err := os.WriteFile(file, []byte("no backup\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, errs, code = harness.RunWith(t, nil, "restore", "--data", filepath.Join(dir, "data"), file)
	if code != 1 || !strings.Contains(errs, "not a promptspool backup") {
		t.Errorf("a restore of something else: %d %s", code, errs)
	}
}
