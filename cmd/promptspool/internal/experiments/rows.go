package experiments

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

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
	if strings.HasSuffix(path, ".csv") {
		read = csvRows
	}
	rows, err := read(bytes.TrimPrefix(text, []byte("\ufeff")))
	seen := map[string]bool{}
	for i := range rows {
		if rows[i].ID == "" {
			rows[i].ID = strconv.Itoa(i + 1)
		}
		if id := rows[i].ID; err == nil && seen[id] {
			err = fmt.Errorf("two rows have the id %q", id)
		}
		seen[rows[i].ID] = true
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}

	return rows, nil
}

func jsonRows(text []byte) (rows []row, err error) {
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		r := row{Variables: map[string]json.RawMessage{}}
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&r); err != nil || d.More() || r.Variables == nil {
			return nil, fmt.Errorf("line %d is not an object with variables, expected, id and metadata: %v",
				number, err)
		}
		rows = append(rows, r)
	}

	return rows, nil
}

// csvRows reads a row from each line. A column is a variable unless it is id, expected or metadata.KEY.
func csvRows(text []byte) (rows []row, err error) {
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	for _, cells := range lines[min(1, len(lines)):] {
		r := row{Variables: map[string]json.RawMessage{}, Metadata: map[string]string{}}
		for i, cell := range cells {
			key, isMetadata := strings.CutPrefix(lines[0][i], "metadata.")
			switch {
			case key == "id":
				r.ID = cell
			case key == "expected":
				r.Expected = jsonscan.AppendString(nil, cell)
			case isMetadata:
				r.Metadata[key] = cell
			default:
				r.Variables[key] = jsonscan.AppendString(nil, cell)
			}
		}
		rows = append(rows, r)
	}

	return rows, err
}
