package print

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	"promptspool/api/words"
	"promptspool/cmd/promptspool/internal/config"
)

// Data prints v for a program, in the form of --output. The items of a list are a line each in NDJSON and CSV.
func Data(c *cli.Context, v any) error {
	form, wanted := config.Read(c).Form(), config.Read(c).Columns()
	if form == config.FormJSON && len(wanted) == 0 {
		return JSON(c.App.Writer, v)
	}
	text, err := jsonscan.Marshal(v)
	if err != nil {
		return err
	}
	items := itemsOf(text)
	columns, err := columnsOf(c, items)
	if err != nil {
		return err
	}

	// A script that reads a part of a list must notice it.
	if cursor, more := jsonscan.Lookup(text, "next_cursor"); more && form != config.FormJSON {
		fmt.Fprintf(c.App.ErrWriter, "More: --cursor %s\n", Printable(jsonscan.Unquote(cursor)))
	}
	if form == config.FormCSV {
		return writeCSV(c.App.Writer, items, columns)
	}
	for i := range items {
		if len(wanted) > 0 {
			some := map[string]json.RawMessage{}
			for _, name := range columns {
				some[name], _ = jsonscan.Lookup(items[i], name)
			}
			items[i], _ = jsonscan.Marshal(some) // what was JSON is so again
		}
		if form == config.FormNDJSON {
			err = errors.Join(err, JSONLine(c.App.Writer, items[i]))
		}
	}
	if form == config.FormJSON {
		return JSON(c.App.Writer, items)
	}
	return err
}

// columnsOf returns the fields that items have or, of these, those of --columns.
func columnsOf(c *cli.Context, items []json.RawMessage) (names []string, err error) {
	for _, item := range items {
		for m := range jsonscan.Members(item) {
			if !slices.Contains(names, m.Name) {
				names = append(names, m.Name)
			}
		}
	}
	if names == nil {
		return config.Read(c).Columns(), nil // of an empty list nothing else is known
	}
	picked, err := pick(c, names)
	return at(names, picked), err
}

// itemsOf returns the items of a list; anything else is one item.
func itemsOf(text json.RawMessage) (items []json.RawMessage) {
	list, isPage := jsonscan.Lookup(text, "items")
	if !isPage {
		list, isPage = jsonscan.Lookup(text, "versions") // of statistics
	}
	switch {
	case isPage:
	case text[0] == '[':
		list = text
	default:
		return []json.RawMessage{text}
	}

	items = []json.RawMessage{} // so that a list without items is printed as []
	for _, item := range jsonscan.Elements(list) {
		items = append(items, item)
	}
	return items
}

// writeCSV writes items as lines. Texts are without quotes, and what has members is JSON.
func writeCSV(w io.Writer, items []json.RawMessage, columns []string) error {
	var lines [][]string
	if columns != nil {
		lines = append(lines, columns)
	}

	for _, item := range items {
		line := make([]string, len(columns))
		for i, name := range columns {
			value, exists := jsonscan.Lookup(item, name)
			switch {
			case exists && value[0] == '"':
				line[i] = wire.CSVCell(jsonscan.Unquote(value))
			case exists:
				line[i] = string(value)
			}
			if IsTerminal(w) {
				line[i] = Printable(line[i])
			}
		}
		lines = append(lines, line)
	}
	return csv.NewWriter(w).WriteAll(lines)
}

// pick returns where the columns of --columns are among those that exist; nil for all of them.
func pick(c *cli.Context, columns []string) ([]int, error) {
	plain := make([]string, len(columns))
	for i, name := range columns {
		plain[i] = strings.ToLower(strings.ReplaceAll(name, " ", "_"))
	}

	r := config.Read(c)
	var picked []int
	for _, name := range r.Columns() {
		i := slices.Index(plain, strings.ToLower(strings.ReplaceAll(name, " ", "_")))
		if i < 0 {
			r.RejectValue("columns", name, "is not one of "+strings.Join(plain, ", ")+words.DidYouMean(name, plain))
			continue
		}
		picked = append(picked, i)
	}
	return picked, r.Err()
}

// at returns the values at some places, or all where there are none.
func at[T any](values []T, places []int) []T {
	if places == nil {
		return values
	}
	some := make([]T, len(places))
	for i, place := range places {
		some[i] = values[place]
	}
	return some
}
