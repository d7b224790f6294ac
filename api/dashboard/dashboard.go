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

	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/overview"
	"promptspool/api/dashboard/people"
	"promptspool/api/dashboard/requests"
	"promptspool/api/dashboard/review"
	"promptspool/api/dashboard/scores"
	"promptspool/api/dashboard/sessions"
	"promptspool/api/dashboard/templates"
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

// Config is what a dashboard is made from. All fields are required.
type Config struct {
	frame.Config // without People, Keys and Definitions, which are here

	People    People
	Keys      Keys
	Records   Records
	Recorder  frame.Recorder
	Scoring   Scoring
	Templates templates.Templates
	Providers []string // the providers that llm_kwargs can be made for
	Retention Retention
}

// New returns the dashboard of a server. It panics if one of its pages does not parse.
func New(c Config) *frame.Frame {
	c.Config.People, c.Config.Keys, c.Definitions = c.People, c.Keys, c.Scoring

	return frame.New(c.Config, sections(c)...)
}

// sections returns all sections of a server.
func sections(c Config) []frame.Section {
	return []frame.Section{
		documentation(c.Config),
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
	for _, section := range sections(Config{}) {
		all = append(all, section.Routes...)
	}

	return all
}
