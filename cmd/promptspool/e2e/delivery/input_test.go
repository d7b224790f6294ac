//go:build linux

package delivery

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
)

// badInput is one call that must be refused, with the status and a part of the message,
// which says what to do.
type badInput struct {
	name         string
	method, path string
	body         any
	header       []string
	status       int
	says         string
}

// badInputs returns the table of calls.
func badInputs(t *testing.T) []badInput {
	t.Helper()
	const (
		request  = "/rest/track-request"
		score    = "/rest/track-score"
		metadata = "/rest/track-metadata"
		prompt   = "/rest/track-prompt"
	)

	id := wire.NewID()
	good := map[string]map[string]any{
		request:  harness.With(harness.Chat(), "api_key", harness.AdminKey),
		score:    {"api_key": harness.AdminKey, "request_id": id, "score": 1},
		metadata: {"api_key": harness.AdminKey, "request_id": id, "metadata": map[string]any{"k": "v"}},
		prompt: {
			"api_key": harness.AdminKey, "request_id": id,
			"prompt_name": "p", "prompt_input_variables": map[string]any{},
		},
	}
	change := func(path, field string, value any) []byte {
		text, err := json.Marshal(good[path])
		if err != nil {
			t.Fatal(err)
		}
		m := harness.Decode(string(text))
		if m[field] = value; value == nil {
			delete(m, field)
		}
		text, _ = json.Marshal(m)
		return text
	}
	withKey := []string{"X-API-KEY", harness.AdminKey}
	table := []badInput{
		{"not JSON", "POST", request, "hello", nil, 400, "not JSON"},
		{"nothing", "POST", request, "", nil, 400, "not JSON"},
		{"half of it", "POST", request, `{"api_key": "` + harness.AdminKey, nil, 400, "not JSON"},
		{"an array", "POST", request, "[]", nil, 400, "not an object"},
		{"a string", "POST", request, `"x"`, nil, 400, "not an object"},
		{"null", "POST", request, "null", nil, 400, "not an object"},
		{"two objects", "POST", score, "{}{}", nil, 400, "not JSON"},
		{"10 MB of [", "POST", request, bytes.Repeat([]byte("["), 10<<20), nil, 400, "nested"},
		{"10 MB of {", "POST", request, bytes.Repeat([]byte(`{"a":`), 2<<20), nil, 400, "nested"},
		{"invalid UTF-8", "POST", metadata,
			bytes.Replace(change(metadata, "x", "y"), []byte(`"v"`), []byte("\"\xff\""), 1), nil, 400, "UTF-8"},
		{"33 MiB", "POST", request,
			append(bytes.Repeat([]byte(" "), 33<<20), change(request, "x", 1)...), nil, 413, "larger than"},
		{"truncated gzip", "POST", request,
			packed(t, change(request, "x", 1))[:40], []string{"Content-Encoding", "gzip"}, 400, "gzip"},
		{"a gzip bomb", "POST", request, packed(t, bytes.Repeat([]byte(" "), 40<<20)),
			[]string{"Content-Encoding", "gzip", "X-API-KEY", harness.AdminKey}, 413, "larger than"},
		{"a zstd bomb", "POST", request, bomb(t),
			[]string{"Content-Encoding", "zstd", "X-API-KEY", harness.AdminKey}, 413, "larger than"},
		{"a bomb without a key in a header", "POST", request, bomb(t),
			[]string{"Content-Encoding", "zstd"}, 401, "X-API-KEY"},
		{"no zstd", "POST", request, change(request, "x", 1), []string{"Content-Encoding", "zstd"}, 400, "zstd"},
		{"another encoding", "POST", request, change(request, "x", 1),
			[]string{"Content-Encoding", "br"}, 415, "gzip, deflate or zstd"},
		{"a member twice", "POST", score, `{"score": 1, "score": 2}`, nil, 422, "twice"},

		{"wrong method", "GET", request, nil, nil, 405, "POST"},
		{"wrong method on a template", "DELETE", "/prompt-templates/x", nil, nil, 405, "GET"},
		{"unknown route", "POST", "/rest/track-requests", "{}", nil, 404, "base URL"},
		{"nowhere", "GET", "/nowhere", nil, nil, 404, "no route"},

		{"no key", "POST", request, change(request, "api_key", nil), nil, 401, "X-API-KEY"},
		{"no key in a header", "POST", "/prompt-templates/x", nil, nil, 401, "X-API-KEY"},
		{"a wrong key", "POST", request, change(request, "api_key", "wrong"), nil, 401, "key"},
		{"a wrong key in a header", "GET", "/api/public/v2/requests/" + id, nil,
			[]string{"X-API-KEY", "wrong"}, 401, "key"},
		{"two keys", "POST", request, change(request, "x", 1), []string{"X-API-KEY", "other"}, 401, "differ"},

		{"no such template", "POST", "/prompt-templates/none", nil, withKey, 404, "none"},
		{"no such request", "GET", "/api/public/v2/requests/" + id, nil, withKey, 404, "request"},
		{"an invalid id", "GET", "/api/public/v2/requests/7", nil, withKey, 422, "UUIDv7"},
		{"an invalid version of a template", "POST", "/prompt-templates/x", `{"version": 0}`, withKey, 422, "version"},
		{"an invalid search", "POST", "/api/public/v2/requests/search",
			`{"filter_group": {"filters": [{"field": "moon", "operator": "is", "value": 1}]}}`,
			withKey, 422, "may be one of"},
		{"a template without text", "POST", "/rest/prompt-templates",
			`{"prompt_template": {"prompt_name": "x"}, "prompt_version": {}}`,
			withKey, 422, "prompt_version.prompt_template"},
	}

	// Of each route one field; all of them are checked by the tests of package wire.
	for path, field := range map[string]string{
		request: "kwargs", score: "score", metadata: "metadata", prompt: "prompt_name",
	} {
		table = append(table,
			badInput{path + " without " + field, "POST", path,
				change(path, field, nil), nil, 422, field + " is missing"},
			badInput{path + " with another " + field, "POST", path, change(path, field, []int{1}), nil, 422, field})
	}

	return table
}

func packed(t *testing.T, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(text); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// bomb returns 128 MiB of blanks in a few kilobytes.
func bomb(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}

	blanks := bytes.Repeat([]byte(" "), 16<<20)
	for range 8 {
		_, _ = w.Write(blanks)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestBadInputIsToldAndStoresNothing(t *testing.T) {
	t.Parallel()
	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	sidecar := harness.StartSidecar(t, t.TempDir(), server.Addr)
	table := badInputs(t)

	for role, n := range map[string]*harness.Node{"sidecar": sidecar, "server": server} {
		for _, c := range table {
			r, err := n.Try(c.method, c.path, c.body, c.header...)
			if err != nil {
				t.Errorf("%s, %s: %v", role, c.name, err)
				continue
			}
			message, _ := r.JSON["message"].(string)
			fields, shaped := r.JSON["fields"].([]any)
			isError := r.JSON["success"] == false && r.JSON["error"] != "" && shaped
			if r.Status != c.status || !strings.Contains(message, c.says) || !isError {
				t.Errorf("%s, %s: %d %.300s; want %d saying %q", role, c.name, r.Status, r.Body, c.status, c.says)
			}

			named := func(f any) bool {
				name, _ := f.(map[string]any)["field"].(string)
				top := func(r rune) bool { return r == '.' || r == '[' }
				return name != "" && strings.Contains(c.name, strings.FieldsFunc(name, top)[0])
			}
			if c.status == 422 && strings.HasPrefix(c.name, "/rest/") && !slices.ContainsFunc(fields, named) {
				t.Errorf("%s, %s: the field is not named in %s", role, c.name, r.Body)
			}
		}
	}

	if n := server.Total(nil); n != 0 {
		t.Errorf("%d records were stored", n)
	}
	if s := sidecar.SpoolStatus(); s["next"] != 1.0 {
		t.Errorf("something was spooled: %v", s)
	}
	if r := sidecar.Call("POST", "/rest/track-request",
		harness.With(harness.Chat(), "api_key", harness.AdminKey)); r.Status != 200 {
		t.Errorf("a good call behind all the bad ones: %d %s", r.Status, r.Body)
	}
	sidecar.Stop()
	server.Stop()
}

func TestWhatIsNoHTTPGetsAJSONAnswerAndAClosedConnection(t *testing.T) {
	sidecar := harness.StartSidecar(t, t.TempDir(), harness.FreePort(t))
	for name, text := range map[string]string{
		"no HTTP": "hello\r\n\r\n",
		"a huge header": "POST /rest/track-score HTTP/1.1\r\nHost: localhost\r\nX: " +
			strings.Repeat("x", 20<<10) + "\r\n\r\n",
		"two lengths": "POST /rest/track-score HTTP/1.1\r\nHost: localhost\r\n" +
			"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"a length of abc": "POST /rest/track-score HTTP/1.1\r\nHost: localhost\r\nContent-Length: abc\r\n\r\n",
		"a broken chunk": "POST /rest/track-score HTTP/1.1\r\nHost: localhost\r\n" +
			"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\nzz\r\n",
		"chunks and bytes": "POST /rest/track-score HTTP/1.1\r\nHost: localhost\r\n" +
			"Content-Length: 3\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", sidecar.Addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}

		var answer bytes.Buffer
		// To the end: the connection is closed.
		if _, err := answer.ReadFrom(conn); err != nil && answer.Len() == 0 {
			t.Errorf("%s: %v", name, err)
		}
		_, body, _ := strings.Cut(answer.String(), "\r\n\r\n")
		isJSON := json.Valid([]byte(body)) && strings.HasPrefix(body, "{")
		if !strings.HasPrefix(answer.String(), "HTTP/1.1 4") || !isJSON {
			t.Errorf("%s: %q", name, answer.String())
		}
		_ = conn.Close()
	}
	if r := sidecar.Call("GET", "/", nil); r.Status != http.StatusNotFound {
		t.Errorf("after them: %d", r.Status)
	}
}
