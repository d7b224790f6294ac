package experiments

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// row is what each version answers.
type row struct {
	ID        string                     `json:"id"`
	Variables map[string]json.RawMessage `json:"variables"` // nil: those of the call with this id
	Expected  json.RawMessage            `json:"expected,omitempty"`
	Metadata  map[string]string          `json:"metadata,omitempty"`
}

// readRows reads a file of rows: CSV if its name ends so, otherwise a JSON object a line.
func readRows(path string) ([]row, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	read := jsonRows
	if strings.HasSuffix(strings.ToLower(path), ".csv") {
		read = csvRows
	}
	rows, err := read(bytes.TrimPrefix(text, []byte("\ufeff")))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}

	seen := map[string]bool{}
	for i := range rows {
		if rows[i].ID == "" {
			rows[i].ID = strconv.Itoa(i + 1)
		}
		if seen[rows[i].ID] {
			return nil, fmt.Errorf("%s: two rows have the id %q", path, rows[i].ID)
		}
		seen[rows[i].ID] = true
	}
	return rows, nil
}

func jsonRows(text []byte) (rows []row, err error) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, wire.BatchBodyBytesMax)
	for number := 1; lines.Scan(); number++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		r := row{Variables: map[string]json.RawMessage{}}
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.DisallowUnknownFields()
		if err := d.Decode(&r); err != nil || d.More() {
			return nil, fmt.Errorf("line %d is not an object with id, variables, expected and metadata: %w",
				number, errors.Join(err))
		}
		rows = append(rows, r)
	}
	return rows, lines.Err()
}

// csvRows reads a row from each line. A column is a variable unless it is id, expected or metadata.KEY.
func csvRows(text []byte) (rows []row, err error) {
	lines := csv.NewReader(bytes.NewReader(text))
	heading, err := lines.Read()
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for {
		cells, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}

		r := row{Variables: map[string]json.RawMessage{}, Metadata: map[string]string{}}
		for i, cell := range cells {
			key, isMetadata := strings.CutPrefix(heading[i], "metadata.")
			switch {
			case heading[i] == "id":
				r.ID = cell
			case heading[i] == "expected":
				r.Expected = jsonscan.AppendString(nil, cell)
			case isMetadata:
				r.Metadata[key] = cell
			default:
				r.Variables[heading[i]] = jsonscan.AppendString(nil, cell)
			}
		}
		rows = append(rows, r)
	}
}
