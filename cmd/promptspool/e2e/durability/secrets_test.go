//go:build linux

package durability

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/spool/archive"
	"promptspool/spool/database/badgerdb"
	"promptspool/spool/database/databasetest"
	"promptspool/spool/disk/disktest"
)

// leaks are bodies as clients send them. SECRET stands for a credential, which differs
// each time.
var leaks = []string{
	`{"kwargs":{"apiKey":"SECRET"}}`,
	`{"kwargs":{"openAIApiKey":"SECRET","configuration":{"baseURL":"https://user:SECRET@proxy.example/v1"}}}`,
	`{"kwargs":{"azureOpenAIApiKey":"SECRET","azure_ad_token":"SECRET"}}`,
	`{"kwargs":{"extra_headers":{"x-api-key":"SECRET","api-key":"SECRET",` +
		`"x-goog-api-key":"SECRET","Cookie":"SECRET"}}}`,
	`{"kwargs":{"credentials":{"secretAccessKey":"SECRET","sessionToken":"SECRET","aws_session_token":"SECRET"}}}`,
	`{"args":[{"accessToken":"SECRET"},{"access_token":"SECRET"},{"token":"SECRET"},{"authToken":"SECRET"}]}`,
	`{"kwargs":{"client_secret":"SECRET","password":"SECRET","api_base":"http://user:SECRET@h/"}}`,
	`{"function_input":"{'args': (), 'kwargs': {'api_key': 'SECRET'}}"}`,
	`{"kwargs":{"messages":[{"role":"user","content":"my key: sk-proj-SECRET"}]}}`,
	`{"request_response":{"choices":[{"message":{"content":"sk-ant-api03-SECRET or ghp_SECRET or xoxb-SECRET"}}]}}`,
	`{"metadata":{"note":"Bearer eyJhbGciOiJIUzI1NiJ9.SECRET.SECRET"},"tags":["AIzaSECRET"]}`,
	`{"kwargs":{"extra_headers":{"helicone-auth":"SECRET","X-Vault-Token":"SECRET"},"auth":"SECRET",` +
		`"x-functions-key":"SECRET","connection_string":"AccountKey=SECRET","credentials":"SECRET","pass":"SECRET",` +
		`"service_account_json":"{\"key\":\"SECRET\"}","signature":"SECRET"}}`,
	`{"kwargs":{"base_url":"https://h.example/x?api_key=SECRET&key=SECRET&sig=SECRET"},"API_KEY":"SECRET"}`,
	`{"metadata":{"note":"fw_SECRET tvly-SECRET pcsk_SECRET ya29.SECRET SG.SECRET npm_SECRET"},` +
		`"tags":["dop_v1_SECRET","whsec_SECRET","rk_live_SECRET","sntrys_SECRET"]}`,
	`{"tags":["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SECRET"]}`,
	`{"metadata":{"user_api_key":"SECRET","a":{"headers":{"Authorization":"SECRET"}},"list":[{"token":"SECRET"}]}}`,
}

// leakingSpan is a model call over OpenTelemetry, with credentials in its attributes.
const leakingSpan = `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"5b8efff798038103d269b633813fc60c",` +
	`"spanId":"eee19b7ec3c1b174","name":"chat","startTimeUnixNano":"1795224000000000000",` +
	`"endTimeUnixNano":"1795224001000000000","attributes":[` +
	`{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},` +
	`{"key":"gen_ai.request.model","value":{"stringValue":"a-model-that-leaks"}},` +
	`{"key":"url.full","value":{"stringValue":"https://h.example/x?key=SECRET&q=a"}},` +
	`{"key":"db.connection_string","value":{"stringValue":"AccountKey=SECRET"}},` +
	`{"key":"http.request.header.helicone-auth","value":{"stringValue":"SECRET"}},` +
	`{"key":"note","value":{"stringValue":"tvly-SECRET"}}]}]}]}]}`

// leaked puts a secret into a body: 36 letters and digits that no other secret has.
func leaked(body string, n int) (sent, secret string) {
	secret = fmt.Sprintf("Zq7%02dxW3kT9mB4vR8nL2pD6hY1sF5gJ0cQe%02d", n, n)
	return strings.ReplaceAll(body, "SECRET", secret), secret
}

// inFolder lists the files below a folder that hold any of some texts.
func inFolder(t *testing.T, folder string, texts []string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := disktest.ReadFile(path)
		for _, text := range texts {
			if bytes.Contains(content, []byte(text)) {
				found = append(found, path+": "+text)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// everythingOf returns everything that a server exports of its records, in both forms.
func everythingOf(t *testing.T, server *harness.Node) string {
	t.Helper()
	events, _ := harness.Run(t, 0, "requests", "export", "--url", "http://"+server.Addr)
	r := server.Call("POST", "/api/public/v2/requests/export", map[string]any{}, "X-API-KEY", harness.AdminKey)
	if r.Status != 200 || len(events) == 0 {
		t.Fatalf("an export: %d, and %d bytes", r.Status, len(events))
	}
	return events + string(r.Body)
}

func holdsAny(text string, secrets []string) (held []string) {
	for _, secret := range secrets {
		if strings.Contains(text, secret) {
			held = append(held, secret)
		}
	}
	return held
}

func TestNoCredentialOfAClientReachesADisk(t *testing.T) {
	t.Parallel()
	server := harness.StartServer(t, t.TempDir(), harness.FreePort(t))
	sidecar := harness.StartSidecar(t, t.TempDir(), server.Addr)
	var ids []string
	span, secret := leaked(leakingSpan, 97)
	r := sidecar.Call("POST", "/v1/traces", span, "Content-Type", "application/json", "X-API-KEY", harness.AdminKey)
	if r.Status != 200 {
		t.Fatalf("a span: %d %s", r.Status, r.Body)
	}
	secrets := []string{secret}
	for n, body := range leaks {
		sent, secret := leaked(body, n)
		secrets = append(secrets, secret)
		fields := harness.Chat()
		for name, value := range harness.Decode(sent) {
			fields[name] = value
		}
		ids = append(ids, sidecar.Track("/rest/track-request", harness.AdminKey, fields))
	}

	note, secret := leaked(`{"note":"fw_SECRET"}`, 98)
	secrets = append(secrets, secret)
	sidecar.Track("/rest/track-metadata", harness.AdminKey,
		map[string]any{"request_id": ids[0], "metadata": harness.Decode(note)})

	// Events of an older sidecar or of an export come by another way.
	at := time.Now().UTC()
	var lines []byte
	for n, body := range leaks {
		sent, secret := leaked(body, n+len(leaks))
		secrets = append(secrets, secret)
		e := wire.Event{
			ID:         wire.NewID(),
			Kind:       wire.KindRequest,
			RequestID:  wire.NewID(),
			AcceptedAt: at,
			Sidecar:    "old",
			Body:       json.RawMessage(sent),
		}
		lines = append(e.AppendLine(lines), '\n')
		ids = append(ids, e.RequestID)
	}
	file := filepath.Join(t.TempDir(), "events")
	if err := os.WriteFile(file, lines, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, through := range []*harness.Node{sidecar, server} { // the second time the server knows them
		harness.Run(t, 0, "requests", "import", "--url", "http://"+through.Addr, file)
	}

	for n, id := range ids {
		count := 1
		if n == 0 {
			count = 2 // and its metadata
		}
		if record := server.Record(id, harness.Events(count)); !bytes.Contains(record.Request, []byte("[masked]")) {
			t.Errorf("nothing is masked in %s", record.Request)
		}
	}
	everything := everythingOf(t, server)
	if held := holdsAny(everything, secrets); len(held) > 0 {
		t.Errorf("the server exports %q", held)
	}
	if !strings.Contains(everything, "a-model-that-leaks") {
		t.Error("the span has not arrived")
	}
	sidecar.Stop()
	server.Stop()
	for _, n := range []*harness.Node{sidecar, server} {
		if found := inFolder(t, n.Data, secrets); len(found) > 0 {
			t.Errorf("on the disk: %q", found)
		}
		if strings.Contains(n.Logged(), "Zq7") {
			t.Error("a credential is in the log")
		}
	}
}

func TestWhatAnOlderVersionStoredIsFoundMaskedAndNotRestored(t *testing.T) {
	t.Parallel()
	server := harness.StartServer(t, t.TempDir(), harness.FreePort(t))
	var verdict wire.KeyVerdict
	if err := json.Unmarshal(server.Get("/sync/key").Body, &verdict); err != nil || verdict.Account == "" {
		t.Fatalf("%+v (%v)", verdict, err)
	}
	server.Stop()
	storeUnmasked(t, server.Data, verdict.Account)
	backup := filepath.Join(t.TempDir(), "backup")
	harness.Run(t, 0, "backup", "--data", server.Data, backup)

	key := []string{databasetest.Key}
	server = harness.StartServer(t, server.Data, server.Addr)
	if held := holdsAny(everythingOf(t, server), key); len(held) == 0 {
		t.Fatal("the key is not stored, so there is nothing to find")
	}
	scan := func(args ...string) string {
		t.Helper()
		args = append([]string{"requests", "scan", "--url", "http://" + server.Addr}, args...)
		out, errs := harness.Run(t, 0, args...)
		if strings.Contains(out+errs, databasetest.Key) {
			t.Errorf("the scan prints the key: %s", out)
		}
		return out
	}
	out := scan()
	if !strings.Contains(out, "provider_key  sk-p...") || !strings.Contains(out, "--mask") {
		t.Errorf("the scan prints %s", out)
	}
	var masked wire.Scanned
	if err := json.Unmarshal([]byte(scan("--mask", "-o", "json")), &masked); err != nil || masked.Masked != 2 {
		t.Errorf("masked %+v (%v), want 2 records", masked, err)
	}
	if held := holdsAny(everythingOf(t, server), key); len(held) > 0 {
		t.Error("after masking, the server still exports the key")
	}
	if out := scan(); strings.Contains(out, "sk-p") {
		t.Errorf("after masking, the scan prints %s", out)
	}

	// An older backup does not bring the key back.
	restored := t.TempDir()
	harness.Run(t, 0, "restore", "--data", restored, backup)
	if found := inFolder(t, restored, key); len(found) > 0 {
		t.Errorf("restored: %q", found)
	}
	if held := holdsAny(everythingOf(t, harness.Launch(t, restored, "127.0.0.1:0", "server")), key); len(held) > 0 {
		t.Error("the restored server exports the key")
	}
}

// storeUnmasked puts a request, and metadata that waits for its request, into an archive,
// as an older version did that masked no keys within texts.
func storeUnmasked(t *testing.T, data, account string) {
	t.Helper()
	db, err := badgerdb.Open(badgerdb.Config{Dir: filepath.Join(data, "archive")})
	if err != nil {
		t.Fatal(err)
	}
	request := databasetest.Event(t, 1, wire.KindRequest, databasetest.ID(1),
		`{"function_name":"f","kwargs":{"messages":[{"role":"user","content":"use `+databasetest.KeyPlace+`"}]}}`)
	waiting := databasetest.Event(t, 2, wire.KindMetadata, databasetest.ID(2),
		`{"metadata":{"note":"`+databasetest.KeyPlace+`"}}`)
	stored := []archive.Event{databasetest.WithKey(t, request), databasetest.WithKey(t, waiting)}
	_, err = db.Apply(t.Context(), account, stored)
	if closeErr := db.Close(); err != nil || closeErr != nil {
		t.Fatal(err, closeErr)
	}
}
