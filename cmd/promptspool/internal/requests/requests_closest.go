package requests

import (
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/api/closest"
	"promptspool/api/filterline"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/print"
)

// closestMax bounds the look for values that exist.
const closestMax = 3 * time.Second

// printUnmatched says that a line finds none of what it is about, and what is close to it.
func printUnmatched(
	c *cli.Context, t *print.Table, records closest.Records, id wire.Identity, line filterline.Line, what string,
) {
	if len(line.Terms) == 0 {
		// Without a filter there is nothing that could be close.
		t.Row("No " + what + ".")
		return
	}

	var all []string
	unknown := ""
	for _, value := range closest.Find(c.Context, records, id, line, closestMax) {
		if value.Key != "" {
			unknown += fmt.Sprintf(" Unknown key %s: did you mean %s?", value.Instead.Part, value.Key)
			continue
		}
		name := strings.TrimSpace(value.Term.Field.Name + " " + value.Term.Part)
		found := humanize.Comma(int64(value.Found.Total))
		if value.Found.TotalIsLowerBound {
			// Counting it to the end is not worth a person's time here.
			found += "+"
		}
		all = append(all, fmt.Sprintf("%s %s (%s)", name, value.Text(), found))
	}

	text := fmt.Sprintf("No %s match these filters.%s", what, unknown)
	if all != nil {
		text += " Closest: " + strings.Join(all, ", ")
	}
	t.Row(text)
}
