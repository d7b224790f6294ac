package main

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dustin/go-humanize"

	"promptspool/api"
	"promptspool/api/dashboard/docs"
	"promptspool/api/mcp"
	"promptspool/api/wire"
)

func TestDocsPrintsPages(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"docs", 0, "\n  alerts           Alerts\n"},
		{"docs limits", 0, "# Limits\n"},
		{"docs limits.md", 0, "# Limits\n"},
		{"docs limts", 2, "did you mean limits?"},
		{"docs nothing-like-it", 2, "`promptspool docs` lists the pages"},
		{"docs limits alerts", 2, "one page at a time"},
	} {
		var out bytes.Buffer
		code := run(context.Background(), append([]string{"promptspool"}, strings.Fields(c.args)...), &out, &out)
		if code != c.code || !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: %d %.300s", c.args, code, out.String())
		}
	}
}

func TestTheReadmeFitsOneLook(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range readmeFaults(string(readme)) {
		t.Errorf("README.md: %s", fault)
	}
	if n := len(readmeFaults(strings.Repeat("x\n", readmeMax) + strings.Repeat("x", readmeWidest+1))); n != 2 {
		t.Errorf("a README that is too long and too wide has %d faults, want 2", n)
	}

	if !strings.Contains(string(readme), "](api/dashboard/docs/pictures/requests.webp)") {
		t.Error("the README shows no picture of the dashboard")
	}
}

func TestThePageOfCallsNamesEveryRouteAndError(t *testing.T) {
	page := docs.Find("api").Source
	for _, call := range api.Routes() {
		method, path, _ := strings.Cut(call, " ")
		if !namesCall(page, method, path) {
			t.Errorf("the page does not name %s", call)
		}
	}
	for _, code := range []wire.Code{
		wire.CodeBadJSON, wire.CodeUnauthorized, wire.CodeForbidden, wire.CodeNotFound, wire.CodeMethod,
		wire.CodeTimeout, wire.CodeConflict, wire.CodeTooLarge, wire.CodeEncoding, wire.CodeInvalid,
		wire.CodeTooMany, wire.CodeInternal, wire.CodeNotImplemented, wire.CodeUnavailable,
	} {
		status := strconv.Itoa(wire.Errorf(code, "").Status())
		if !strings.Contains(page, "| "+status+" | `"+string(code)+"` |") {
			t.Errorf("the page does not name %s with %s", code, status)
		}
	}
}

var (
	// callInBackticks is a path in backticks, perhaps with a method in front.
	callInBackticks  = regexp.MustCompile("`(?:([A-Z]+) )?(/[^`]*)`")
	identifierBraces = regexp.MustCompile(`\{[^}]*\}`)
)

// namesCall reports whether a row of the page names a method and a path, with any name
// for its identifier.
func namesCall(page, method, path string) bool {
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		last := ""
		for _, word := range callInBackticks.FindAllStringSubmatch(line, -1) {
			if word[1] != "" {
				last = word[1]
			}
			if last == method && identifierBraces.ReplaceAllString(word[2], "{}") == path {
				return true
			}
		}
	}
	return false
}

func TestThePageOfLimitsIsOfTheProgram(t *testing.T) {
	page := docs.Find("limits").Source
	comma := func(n int64) string { return humanize.Comma(n) }
	for _, line := range []string{
		"| a body, as sent and unpacked | " + humanize.IBytes(wire.BodyBytesMax) + "; ",
		"| nesting, fields of a body | " + comma(wire.JSONDepthMax) + ", " + comma(wire.ObjectMembersMax) + " |",
		"| tags, and metadata keys of one write | " + comma(wire.TagsMax) + ", " + comma(wire.MetadataKeysMax) + " |",
		"| a tag, a name, a metadata key, a metadata value | " +
			comma(wire.NameRunesMax) + ", " + comma(wire.NameRunesMax) + ", " +
			comma(wire.MetadataKeyRunesMax) + " characters, " + humanize.IBytes(wire.MetadataValueBytesMax) + " |",
		"| metadata of one write, keys and values | " + humanize.IBytes(wire.MetadataBytesMax) + " |",
		"| " + comma(wire.PageItemsMax) + " records; the first " + comma(wire.PageOffsetMax) + " records |",
		"| a message of an agent | " + humanize.IBytes(mcp.MessageBytesMax) + " |",
		"| " + comma(sidecarConnectionsMax) + ", 16,384, 128; ",
	} {
		if !strings.Contains(page, line) {
			t.Errorf("the page does not say %q", line)
		}
	}
}
