// Package dashboard serves what people see of a server in their browser: requests and
// scores, templates and their versions, statistics, sidecars, people, keys and the docs.
//
// Every page is rendered here, as a whole, from html/template, and works without scripts;
// a small script makes it quicker. Nothing is loaded from other hosts.
//
// Whatever was logged is data: it is escaped wherever it is shown, and the
// Content-Security-Policy allows no script, style or image but our own.
//
// The pages of a subject are a section: a package with a table of its routes in pages.go, and a Go file
// and an HTML file for each page. A section uses the packages below it, and no other section.
//
//	overview/ requests/ sessions/ review/ scores/ templates/    the sections, besides docs.go and people/
//	frame/                                      what is around every page: routes, sessions, layout, errors
//	filter/ conversation/                       what several sections show: the filter of requests; messages
//	chart/ markup/ textdiff/ number/ address/   drawing and printing
//	docs/                                       the documentation itself
package dashboard

import (
	"log/slog"
	"net/url"
	"time"

	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/overview"
	"promptspool/api/dashboard/people"
	"promptspool/api/dashboard/requests"
	"promptspool/api/dashboard/review"
	"promptspool/api/dashboard/scores"
	"promptspool/api/dashboard/sessions"
	"promptspool/api/dashboard/templates"
	"promptspool/api/wire"
)

// People signs people up and in, and lets owners manage those of their account.
type People interface {
	frame.People
	people.People
}

// Keys manages the API keys of all accounts.
type Keys interface {
	frame.Keys
	people.Keys
}

// Records reads what was logged, and deletes it.
type Records interface {
	overview.Records
	requests.Records
	scores.Records
	sessions.Records
	templates.Records
}

// Scoring keeps the definitions of scores, and the queues in which people give them.
type Scoring interface {
	review.Queues
	scores.Scoring
}

// Retention limits what the server keeps of each account.
type Retention = overview.Retention

// Config is what a dashboard is made from. All fields are required, except Issuer,
// Now, those of `up` and those about the address.
type Config struct {
	People    People
	Issuer    frame.Issuer
	Keys      Keys
	Records   Records
	Recorder  frame.Recorder
	Scoring   Scoring
	Templates templates.Templates
	Providers []string // the providers that llm_kwargs can be made for
	Sidecars  frame.Sidecars
	Retention Retention
	Version   string
	Logger    *slog.Logger
	Now       func() time.Time // time.Now if nil

	// SidecarURL is that of the sidecar which `up` runs beside this server, PrintedKey the key
	// of the first project that it shows in the terminal.
	SidecarURL string
	PrintedKey wire.Secret

	// PublicURL is where people open the dashboard, without a slash at its end; nil is wherever
	// they call it. CookiesInsecure lets sessions travel over plain HTTP.
	PublicURL       *url.URL
	CookiesInsecure bool
}

// New returns the dashboard of a server. It panics if one of its pages does not parse.
func New(c Config) *frame.Frame {
	around := frame.Config{
		People:          c.People,
		Keys:            c.Keys,
		Issuer:          c.Issuer,
		Version:         c.Version,
		Logger:          c.Logger,
		Now:             c.Now,
		Definitions:     c.Scoring,
		SidecarURL:      c.SidecarURL,
		PrintedKey:      c.PrintedKey,
		Sidecars:        c.Sidecars,
		PublicURL:       c.PublicURL,
		CookiesInsecure: c.CookiesInsecure,
	}

	return frame.New(around, sections(c, around)...)
}

// sections returns all sections of a server.
func sections(c Config, around frame.Config) []frame.Section {
	return []frame.Section{
		documentation(around),
		frame.SignIn(),
		overview.Pages(c.Records, c.Retention),
		requests.Pages(c.Records, c.Recorder, c.Templates),
		sessions.Pages(c.Records, c.Recorder),
		review.Pages(c.Records, c.Recorder, c.Scoring),
		scores.Pages(c.Records, c.Scoring),
		templates.Pages(c.Templates, c.Records, c.Providers),
		people.Pages(c.People, c.Keys),
	}
}

// NewDocs returns a dashboard with only the documentation, for processes without sign-in.
func NewDocs(version string, logger *slog.Logger) *frame.Frame {
	around := frame.Config{Version: version, Logger: logger}

	return frame.New(around, documentation(around))
}

// Routes lists what the dashboard serves, except its files.
func Routes() (all []frame.Route) {
	for _, section := range sections(Config{}, frame.Config{}) {
		all = append(all, section.Routes...)
	}

	return all
}
