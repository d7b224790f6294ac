package prices

import (
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"promptspool/api/calls"
	"promptspool/api/wire/packed"
)

// builtInFile is prices.txt.
//
//go:embed prices.txt.zst
var builtInFile []byte

var builtIn = packed.Text(builtInFile)

// BuiltIn returns the table that comes with the program.
var BuiltIn = sync.OnceValue(func() *Table {
	t, err := parseTable(builtIn())
	if err != nil {
		panic("prices.txt: " + err.Error()) // a test reads it
	}
	return t
})

// The columns of prices.txt. The prices are in between.
const (
	columnName  = 1
	columnFrom  = 2
	columnPrice = 3 // the first of them
	columnTiers = 16
	columnDay   = 17 // when the price was looked up
	columnURL   = 18
	columns     = 19
)

// parseTable reads the form of prices.txt.
func parseTable(text string) (*Table, error) {
	t := &Table{models: make(map[string][]price)}
	hasHeader := false
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "#") || line == "" {
			continue
		}
		f := strings.Fields(line)
		if len(f) != columns {
			return nil, fmt.Errorf("line %d has %d columns, not %d", i+1, len(f), columns)
		}
		if !hasHeader {
			hasHeader = true
			continue
		}

		p, err := parseRow(f)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		name := f[columnName]
		// In order of days, because a look-up takes the last price that applies.
		if have := t.models[name]; len(have) > 0 && !have[len(have)-1].from.Before(p.from) {
			return nil, fmt.Errorf("line %d: %s is above for the same day or a later one", i+1, name)
		}
		t.models[name] = append(t.models[name], p)
	}

	return t, nil
}

func parseRow(f []string) (p price, err error) {
	if f[columnFrom] != "-" {
		p.from, err = time.Parse(time.DateOnly, f[columnFrom])
		if err != nil {
			return p, err
		}
	}

	p.rates, p.long = noRates, noRates
	cells := []*int64{
		&p.rates[input], &p.rates[output], &p.rates[cached], &p.rates[write], &p.rates[writeHour],
		&p.rates[audioIn], &p.rates[audioOut],
		&p.over,
		&p.long[input], &p.long[output], &p.long[cached], &p.long[write], &p.long[writeHour],
	}
	for i, cell := range cells {
		text := f[columnPrice+i]
		switch {
		case text == "-":
		case cell == &p.over:
			*cell, err = strconv.ParseInt(text, 10, 64)
		default:
			// Dollars per million tokens are 10^6 picodollars per token.
			*cell, err = calls.ParseDecimal(text, 6)
		}
		if err != nil {
			return p, fmt.Errorf("%q: %w", text, err)
		}
	}

	p.tiers, err = parseTiers(f[columnTiers])
	if err != nil {
		return p, err
	}
	_, err = time.Parse(time.DateOnly, f[columnDay])
	if err != nil || !strings.HasPrefix(f[columnURL], "https://") {
		return p, errors.New("the day or the source is missing")
	}

	return p, nil
}

// parseTiers reads a list such as batch=50,priority=170.
func parseTiers(text string) (map[string]tierPrice, error) {
	if text == "-" {
		return nil, nil
	}

	tiers := make(map[string]tierPrice)
	for tier := range strings.SplitSeq(text, ",") {
		name, percent, _ := strings.Cut(tier, "=")
		n, err := strconv.ParseUint(percent, 10, 16)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("tier %q: must be a percentage above 0", tier)
		}
		tiers[name] = tierPrice{percent: n}
	}

	return tiers, nil
}
