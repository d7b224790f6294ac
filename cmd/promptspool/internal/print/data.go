package print

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/itchyny/gojq"
	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	"promptspool/api/words"
	"promptspool/cmd/promptspool/internal/config"
)

// Data prints v for a program, in the form of --output. The items of a list are a line each in NDJSON and CSV.
func Data(c *cli.Context, v any) error { return dataAs(c, v, config.Read(c).Form()) }

// Line prints an item of a list without an end for a program, in a line of JSON.
func Line(c *cli.Context, v any) error { return dataAs(c, v, config.FormNDJSON) }

func dataAs(c *cli.Context, v any, form string) error {
	wanted := config.Read(c).Columns()
	if form == config.FormJSON && len(wanted) == 0 {
		return emit(c, v, JSON)
	}
	text, err := jsonscan.Marshal(v)
	if err != nil {
		return err
	}
	items, isList := itemsOf(text)
	columns, err := columnsOf(c, items, fieldsOf(reflect.TypeOf(v)))
	if err != nil {
		return err
	}

	// A script that reads a part of a list must notice it.
	if cursor, more := jsonscan.Lookup(text, "next_cursor"); more {
		fmt.Fprintf(c.App.ErrWriter, "More: --cursor %s\n", Printable(jsonscan.Unquote(cursor)))
	}
	if form == config.FormCSV {
		return writeCSV(c.App.Writer, items, columns)
	}
	for i := range items {
		if len(wanted) > 0 {
			some := map[string]json.RawMessage{}
			for j, name := range columns {
				some[wanted[j]], _ = jsonscan.Lookup(items[i], name)
			}
			// JSON stays JSON, which always encodes.
			items[i], _ = jsonscan.Marshal(some)
		}
		if form == config.FormNDJSON {
			err = errors.Join(err, emit(c, items[i], JSONLine))
		}
	}
	switch {
	case form != config.FormJSON:
		return err
	case isList:
		return emit(c, items, JSON)
	}
	return emit(c, items[0], JSON)
}

// emit writes v or, with --jq, each value that the expression makes of it: a line each, and texts as they are.
func emit(c *cli.Context, v any, write func(io.Writer, any) error) error {
	expression := config.Read(c).Expression()
	if expression == nil {
		return write(c.App.Writer, v)
	}
	text, err := jsonscan.Marshal(v)
	if err != nil {
		return err
	}
	var input any
	d := json.NewDecoder(bytes.NewReader(text))
	// No digit of a number is lost.
	d.UseNumber()
	if err := d.Decode(&input); err != nil {
		return err
	}

	values := expression.RunWithContext(c.Context, input)
	for value, more := values.Next(); more && err == nil; value, more = values.Next() {
		switch value := value.(type) {
		case error:
			return fmt.Errorf("--jq: %w", value)
		case string:
			if IsTerminal(c.App.Writer) {
				value = Printable(value)
			}
			_, err = fmt.Fprintln(c.App.Writer, value)
		default:
			text, err = gojq.Marshal(value)
			if err == nil {
				err = JSONLine(c.App.Writer, json.RawMessage(text))
			}
		}
	}
	return err
}

// fieldsOf returns the fields that a type has as JSON, or the items of a list of that type: of those
// that are left out when they are empty, a page may have none.
func fieldsOf(t reflect.Type) (names []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch name {
		case "items", "versions":
			return fieldsOf(field.Type)
		case "", "-":
		default:
			names = append(names, name)
		}
	}
	return names
}

// columnsOf returns the fields that items have or those of --columns, which may also be among others.
func columnsOf(c *cli.Context, items []json.RawMessage, others []string) (names []string, err error) {
	for _, item := range items {
		for m := range jsonscan.Members(item) {
			if !slices.Contains(names, m.Name) {
				names = append(names, m.Name)
			}
		}
	}
	wanted := config.Read(c).Columns()
	if wanted == nil {
		return names, nil
	}

	for _, name := range others {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if names == nil {
		// Nothing is known of them.
		return wanted, nil
	}
	picked, err := pick(c, names)
	return at(names, picked), err
}

// itemsOf returns the items of a list; anything else is one item.
func itemsOf(text json.RawMessage) (items []json.RawMessage, isList bool) {
	list, isPage := jsonscan.Lookup(text, "items")
	if !isPage {
		// Statistics have versions in place of items.
		list, isPage = jsonscan.Lookup(text, "versions")
	}
	switch {
	case isPage:
	case text[0] == '[':
		list = text
	default:
		return []json.RawMessage{text}, false
	}

	// Not nil, so that a list without items is printed as [].
	items = []json.RawMessage{}
	for _, item := range jsonscan.Elements(list) {
		items = append(items, item)
	}
	return items, true
}

// writeCSV writes items as lines. Texts are without quotes, and what has members is JSON.
func writeCSV(w io.Writer, items []json.RawMessage, columns []string) error {
	var lines [][]string
	if columns != nil {
		heads := slices.Clone(columns)
		for i := range heads {
			heads[i] = columnName(heads[i])
		}
		lines = append(lines, heads)
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

// columnName returns the name of a column by its heading or by its field in JSON.
func columnName(name string) string {
	return wire.ColumnName(strings.ToLower(strings.ReplaceAll(name, " ", "_")))
}

// pick returns where the columns of --columns are among those that exist; nil for all of them.
func pick(c *cli.Context, columns []string) ([]int, error) {
	plain := make([]string, len(columns))
	for i, name := range columns {
		plain[i] = columnName(name)
	}

	r, flag := config.Read(c), "columns"
	if c.String("json") != "" {
		flag = "json"
	}
	all := strings.Join(plain, ", ")
	var picked []int
	for _, name := range r.Columns() {
		i := slices.Index(plain, columnName(name))
		if i < 0 {
			hint := ""
			near := words.Closest(name, plain)
			if len(near) == 0 {
				near = words.Closest(name, columns)
			}
			if len(near) > 0 {
				hint = "; did you mean " + english.WordSeries(near, "or") + "?"
			}
			r.RejectValue(flag, name, "is not one of "+all+hint)
			// The list is long, and once is enough.
			all = "these"
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
