package main

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
)

// readmeTable are the cells of the README's table with this head.
func readmeTable(t *testing.T, head ...string) (rows [][]string) {
	t.Helper()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(readme), "\n| "+strings.Join(head, " | ")+" |\n|"+strings.Repeat("---|", len(head))+"\n")
	if !ok {
		t.Fatalf("the README has no table of %v", head)
	}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < len(head)+2 {
			break
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells[1:len(cells)-1])
	}
	return rows
}

var code = regexp.MustCompile("`([^`]+)`")

// codesIn are the words of a cell that stand in backticks.
func codesIn(cell string) (words []string) {
	for _, m := range code.FindAllStringSubmatch(cell, -1) {
		words = append(words, m[1])
	}
	return words
}

// allCommands are the command table's, by their names in full; those that only group others are left out.
func allCommands() map[string]*cli.Command {
	all := map[string]*cli.Command{}
	var add func(prefix string, commands []*cli.Command)
	add = func(prefix string, commands []*cli.Command) {
		for _, c := range commands {
			if len(c.Subcommands) > 0 {
				add(prefix+c.Name+" ", c.Subcommands)
			} else {
				all[prefix+c.Name] = c
			}
		}
	}
	add("", newApp(&bytes.Buffer{}, &bytes.Buffer{}).Commands)
	return all
}

func TestTheReadmeNamesEveryCommandAndNoOther(t *testing.T) {
	said := map[string]bool{}
	commands := allCommands()
	for _, row := range readmeTable(t, "command", "what it does") {
		group := ""
		for _, words := range codesIn(row[0]) {
			name := strings.Fields(words)
			if len(name) > 1 && commands[name[0]+" "+name[1]] != nil {
				group = name[0]
				said[name[0]+" "+name[1]] = true
			} else if commands[group+" "+name[0]] != nil {
				said[group+" "+name[0]] = true
			} else if commands[name[0]] != nil {
				said[name[0]] = true
			} else {
				t.Errorf("the README names the command %q, which does not exist", words)
			}
		}
	}
	for name := range commands {
		if !said[name] {
			t.Errorf("the README does not name the command %q", name)
		}
	}
}

func TestTheReadmeNamesEveryFlagOfWhatRuns(t *testing.T) {
	withoutVariables(t)
	commands := allCommands()
	said := map[string]string{} // "role --flag" to its default's cell
	for _, row := range readmeTable(t, "flag", "of", "default", "meaning") {
		for _, flag := range codesIn(row[0]) {
			for of := range strings.SplitSeq(row[1], ", ") {
				said[of+" "+flag] = row[2]
				if !slices.ContainsFunc(sortedNames(commands), func(name string) bool {
					return (name == of || strings.HasPrefix(name, of+" ")) && slices.ContainsFunc(commands[name].Flags, func(f cli.Flag) bool { return "--"+f.Names()[0] == flag })
				}) {
					t.Errorf("the README names %s of %s, which does not exist", flag, of)
				}
			}
		}
	}
	for _, role := range []string{"server", "sidecar", "up"} {
		for _, f := range commands[role].Flags {
			name := "--" + f.Names()[0]
			cell, ok := said[role+" "+name]
			if !ok {
				t.Errorf("the README does not name %s of %s", name, role)
				continue
			}
			fallback := f.(cli.DocGenerationFlag).GetDefaultText()
			if s, ok := f.(*cli.StringFlag); ok && fallback != "" && s.Name != "name" && !strings.Contains(cell, fallback) {
				t.Errorf("the default of %s of %s is %s; the README says %s", name, role, fallback, cell)
			}
		}
	}
}

func sortedNames(commands map[string]*cli.Command) (names []string) {
	for name := range commands {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestTheReadmesLimitsAreThoseOfTheProgram(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	comma := func(n int64) string { return humanize.Comma(n) }
	for _, line := range []string{
		"| a body, as sent and unpacked | " + humanize.IBytes(wire.BodyBytesMax) + "; ",
		"| nesting, fields of a body | " + comma(wire.JSONDepthMax) + ", " + comma(wire.ObjectMembersMax) + " |",
		"| tags, and metadata keys of one write | " + comma(wire.TagsMax) + ", " + comma(wire.MetadataKeysMax) + " |",
		"| a tag, a name, a metadata key, a metadata value | " + comma(wire.NameRunesMax) + ", " + comma(wire.NameRunesMax) + ", " +
			comma(wire.MetadataKeyRunesMax) + " characters, " + humanize.IBytes(wire.MetadataValueBytesMax) + " |",
		"| metadata of one write, keys and values | " + humanize.IBytes(wire.MetadataBytesMax) + " |",
		"| " + comma(wire.PageItemsMax) + " records; the first " + comma(wire.PageOffsetMax) + " records |",
		"| " + comma(sidecarConnectionsMax) + ", 16,384, 128; ",
	} {
		if !strings.Contains(string(readme), line) {
			t.Errorf("the README does not say %q", line)
		}
	}
}
