package client

import (
	"io"
	"net/http"
	"testing"

	"promptspool/api/wire"
)

// sent is what arrived at the server.
type sent struct{ Method, URI, Body, Key, Agent, Type, Encoding string }

func TestACallSaysWhoItIsFromAndWhatItsBodyIs(t *testing.T) {
	var got sent
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = sent{
			Method:   r.Method,
			URI:      r.RequestURI,
			Body:     string(body),
			Key:      r.Header.Get("X-API-KEY"),
			Agent:    r.Header.Get("User-Agent"),
			Type:     r.Header.Get("Content-Type"),
			Encoding: r.Header.Get("Content-Encoding"),
		}
		answer(200, `{"success":true,"accepted":1,"of_a_newer_server":1}`)(w, r)
	})
	want := sent{Key: string(key), Agent: "promptspool/1.2.3", Type: "application/json"}

	if _, err := c.Send(t.Context(), key, 1, []byte("packed")); err != nil {
		t.Fatal(err)
	}
	want.Method, want.URI, want.Body, want.Encoding = "POST", "/sync/events", "packed", "zstd"
	same(t, "batch", got, want)

	if _, err := c.Search(t.Context(), caller, wire.Search{}); err != nil {
		t.Fatal(err)
	}
	want.URI, want.Body, want.Encoding = "/api/public/v2/requests/search", "{}", ""
	same(t, "search", got, want)

	if _, err := c.Raw(t.Context(), caller, "a/b", wire.Selector{}); err != nil {
		t.Fatal(err)
	}
	want.Method, want.URI, want.Body, want.Type = "GET", "/prompt-templates/a%2Fb", "", ""
	same(t, "template", got, want)
}

func TestABatchAnswerMustAccountForEveryEvent(t *testing.T) {
	for _, body := range []string{
		`{"success":true}`,
		`{"success":true,"accepted":4,"duplicate":0,"refused":[]}`,
		`{"success":true,"accepted":6,"duplicate":-1,"refused":[]}`,
		`{"success":true,"accepted":-1,"duplicate":6,"refused":[]}`,
		`{"success":true,"accepted":5,"duplicate":0,"refused":[{"id":"e","code":"later"}]}`,
		`{"success":false,"accepted":5}`,
	} {
		_, err := serve(t, answer(200, body)).Send(t.Context(), key, 5, nil)
		wantAway(t, body, err, wire.Away{Status: 200})
	}
}
