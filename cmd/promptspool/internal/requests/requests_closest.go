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
func printUnmatched(c *cli.Context, records closest.Records, id wire.Identity, line filterline.Line, what string) {
	p := print.NewPainter(c)
	if len(line.Terms) == 0 {
		// Without a filter there is nothing that could be close.
		fmt.Fprintf(p.Out, "No %s.\n", what)
		return
	}

	var all []string
	unknown := ""
	for _, value := range closest.Find(c.Context, records, id, line, closestMax) {
		if value.Key != "" {
			unknown += fmt.Sprintf(" Unknown key %s: did you mean %s?",
				print.Printable(value.Instead.Part), print.Printable(value.Key))
			continue
		}
		name := strings.TrimSpace(value.Term.Field.Name + " " + value.Term.Part)
		found := humanize.Comma(int64(value.Found.Total))
		if value.Found.TotalIsLowerBound {
			// Counting it to the end is not worth a person's time here.
			found += "+"
		}
		all = append(all, fmt.Sprintf("%s %s (%s)", print.Printable(name), print.Printable(value.Text()), found))
	}

	fmt.Fprintf(p.Out, "No %s match these filters.%s", what, unknown)
	if all != nil {
		fmt.Fprint(p.Out, " Closest: "+strings.Join(all, ", "))
	}
	fmt.Fprintln(p.Out)
}
