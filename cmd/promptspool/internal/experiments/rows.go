package experiments

import (
	"bytes"
	"cmp"
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
		id := cmp.Or(rows[i].ID, strconv.Itoa(i+1))
		if seen[id] && err == nil {
			err = fmt.Errorf("two rows have the id %q", id)
		}
		rows[i].ID, seen[id] = id, true
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}

	return rows, err
}

func jsonRows(text []byte) (rows []row, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	for d.More() {
		r := row{Variables: map[string]json.RawMessage{}}
		err := d.Decode(&r)
		if err != nil || r.Variables == nil {
			return nil, fmt.Errorf("row %d is not an object with variables, expected, id and metadata: %v",
				len(rows)+1, err)
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
