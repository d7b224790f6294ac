package api

import (
	"testing"

	"promptspool/api/wire"
)

func TestPathsFindTheirRoutes(t *testing.T) {
	for _, c := range []struct{ method, path, route, ident string }{
		{"POST", "/rest/track-request", "track-request", ""},
		{"POST", "/track-request", "track-request", ""},
		{"POST", "//rest/track-request", "track-request", ""}, // a base URL with a slash at its end
		{"POST", "/library-track-score", "track-score", ""},
		{"POST", "/library-track-metadata", "track-metadata", ""},
		{"POST", "/library-track-prompt", "track-prompt", ""},
		{"POST", "/create-group", "create-group", ""},
		{"POST", "/prompt-templates/greet", "fetch-template", "greet"},
		{"POST", "/prompt-templates/team/greet", "fetch-template", "team/greet"},
		{"POST", "/prompt-templates/team%2Fgreet", "fetch-template", "team/greet"},
		{"POST", "/prompt-templates/100%25%20sure", "fetch-template", "100% sure"},
		{"POST", "/prompt-templates/a%252Fb", "fetch-template", "a%2Fb"}, // decoded once
		{"POST", "/prompt-templates/a//b/", "fetch-template", "a//b/"},
		{"GET", "/prompt-templates/greet", "raw-template", "greet"},
		{"GET", "/prompt-templates", "list-templates", ""},
		{"GET", "/rest/prompts", "list-templates", ""},
		{"GET", "/library-get-prompt-template", "get-template", ""},
		{"POST", "/rest/prompt-templates", "publish-template", ""},
		{"POST", "/api/public/v2/requests/search", "search-requests", ""},
		{"GET", "/api/public/v2/requests/0198", "get-request", "0198"},
		{"POST", "/sync/events", "sync-events", ""},
	} {
		r, ident, _, err := find(c.method, c.path)
		if err != nil || r.name != c.route || ident != c.ident {
			t.Errorf("%s %s: %v %q %v, want %s %q", c.method, c.path, r, ident, err, c.route, c.ident)
		}
	}
}

func TestPathsThatAreNoRoutes(t *testing.T) {
	for _, c := range []struct {
		method, path string
		code         wire.Code
		allow        string
	}{
		{"POST", "/", wire.CodeNotFound, ""},
		{"POST", "/rest/track-requests", wire.CodeNotFound, ""},
		{"POST", "/rest/track-request/", wire.CodeNotFound, ""},
		{"POST", "/prompt-templates/", wire.CodeNotFound, ""},
		{"POST", "/prompt-templates/%zz", wire.CodeNotFound, ""},
		{"GET", "/rest/track-request", wire.CodeMethod, "POST"},
		{"DELETE", "/prompt-templates/greet", wire.CodeMethod, "POST, GET"},
		{"PUT", "/prompt-templates", wire.CodeMethod, "GET"},
	} {
		_, _, allow, err := find(c.method, c.path)
		if !wire.IsCode(err, c.code) || allow != c.allow {
			t.Errorf("%s %s: %v, Allow %q; want %s, %q", c.method, c.path, err, allow, c.code, c.allow)
		}
	}
}
