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

// Some returns those of a query's parameters that have a value.
func Some(q url.Values, names ...string) url.Values {
	some := url.Values{}
	for _, name := range names {
		Set(some, name, q.Get(name))
	}

	return some
}

// Set sets a parameter of a query; "" takes it away.
func Set(q url.Values, name, value string) {
	q.Set(name, value)
	if value == "" {
		q.Del(name)
	}
}

// With returns an address with one more parameter.
func With(to, name, value string) string {
	separator := "?"
	if strings.Contains(to, "?") {
		separator = "&"
	}

	return to + separator + url.Values{name: {value}}.Encode()
}

// Template returns the address of a template's page. params are names and values, of which "" is none.
func Template(page, name string, params ...string) string {
	q := url.Values{"name": {name}}
	for i := 0; i+1 < len(params); i += 2 {
		Set(q, params[i], params[i+1])
	}

	return Of(page, q)
}

// Session returns the address of a session's page.
func Session(id string) string { return "/sessions/" + url.PathEscape(id) }
