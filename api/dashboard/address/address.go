// Package address makes the addresses of the dashboard's pages.
package address

import (
	"net/url"
	"strings"
)

// Of joins a path and a query.
func Of(path string, q url.Values) string {
	if len(q) == 0 {
		return path
	}

	return path + "?" + q.Encode()
}

// With returns an address with one more parameter.
func With(to, name, value string) string {
	separator := "?"
	if strings.Contains(to, "?") {
		separator = "&"
	}

	return to + separator + url.Values{name: {value}}.Encode()
}

// Template returns the address of a template's page. params are names and values.
func Template(page, name string, params ...string) string {
	q := url.Values{"name": {name}}
	for i := 0; i+1 < len(params); i += 2 {
		q.Set(params[i], params[i+1])
	}

	return Of(page, q)
}

// Session returns the address of a session's page.
func Session(id string) string { return "/sessions/" + url.PathEscape(id) }
