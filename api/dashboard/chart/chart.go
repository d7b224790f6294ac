// Package chart draws numbers over time as SVG, on the server: pages work without scripts.
package chart

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"promptspool/api/dashboard/address"
	"promptspool/api/wire"
)

// Chart is a series of numbers over time. The server draws it as SVG, and prints the same
// as a table for people who cannot see the drawing.
type Chart struct {
	Title   string
	Names   []string       // of the lines, or of a bar's parts
	Classes map[int]string // of names that have another colour than that of their place
	Points  []Point        // ordered by time
	Format  func(float64) string
	Bars    bool          // stacked bars instead of lines
	Time    bool          // values are seconds, so the grid is in minutes and hours
	Bucket  time.Duration // the time that one point covers
	Marks   []Mark        // ordered by time, all between the first point and the last

	// Zoom is the address of the page at another time, whose ends are {from} and {to}: those that Edges
	// returns for the first and the last point in it. "" if there is none.
	Zoom  string
	Edges func(Point) (from, to string)

	// Lists are the addresses of the requests of each name, with {from} and {to} as in Zoom.
	Lists []string

	// Link returns the address that a bar or a point links to. Nil if there is none.
	Link func(Point) string

	// LinkValue returns the address that one value of a point links to, or "". Nil if
	// there are none.
	LinkValue func(p Point, i int) string

	bare bool // another chart has the same links in its table, and the same marks
}

// Mark is something that happened at a moment, and may explain what the values did then.
type Mark struct {
	At         time.Time
	Text, Href string
}

// marksMax bounds the marks of a chart to the newest, which are listed below it.
const marksMax = 8

// MarkMoves marks when labels were moved, those of one template or of all: one mark for each point. The
// moves are ordered by time.
func (c *Chart) MarkMoves(moved []wire.TemplateMove, template string) {
	moved = slices.DeleteFunc(slices.Clone(moved), func(m wire.TemplateMove) bool {
		return template != "" && m.Template != template || len(c.Points) == 0 || m.At.Before(c.Points[0].At)
	})
	for i, p := range c.Points {
		end := p.To
		if i+1 < len(c.Points) {
			end = c.Points[i+1].At
		}
		n := 0
		for n < len(moved) && moved[n].At.Before(end) {
			n++
		}
		if n == 0 {
			continue
		}

		m := moved[0]
		moved = moved[n:]
		mark := Mark{At: m.At, Text: fmt.Sprintf("%s %s: %d → %d", m.Template, m.Label, m.Was, m.Version),
			Href: address.Template("/template", m.Template)}
		if n > 1 {
			mark.Text, mark.Href = fmt.Sprintf("%d labels moved", n), "/templates"
		}
		c.Marks = append(c.Marks, mark)
	}
	c.Marks = c.Marks[max(len(c.Marks)-marksMax, 0):]
}

// ListedMarks returns the marks that the page lists below the chart.
func (c *Chart) ListedMarks() []Mark {
	if c.bare {
		return nil
	}

	return c.Marks
}

// LinesMax bounds the lines of a chart to as many colours as can be told apart.
const LinesMax = 6

// KeepFirstLinks leaves links only in the table of the first chart. All charts of a page
// are of the same times, and screen readers would list every link again.
func KeepFirstLinks(charts []*Chart) {
	for _, c := range charts[1:] {
		c.bare = true
	}
}

// Point holds the values of one bucket, one for each name. Missing values are NaN. Times are shown
// in the zone that At is in.
type Point struct {
	At     time.Time
	To     time.Time // the end of the bucket: a day may have 23 or 25 hours
	Values []float64
}

// size is the width and the height of a drawing in its own units. The page stretches it to its space; letters
// are around it, so that they keep their size.
const size = 1000

// scale maps times and values to places on the drawing.
type scale struct {
	from, to    time.Time // at the left and right edge
	top, bottom float64   // the values at the upper and the lower edge, or their logarithms
	log         bool
	labels      []string // of the lines of the grid, which are evenly spaced, from the bottom up
}

// logMin is how many times the lowest latency the highest one is before they are drawn by their logarithms:
// otherwise one outlier flattens the others.
const logMin = 20

func (c *Chart) scale() scale {
	lowest, highest := c.extremes()
	s := scale{from: c.Points[0].At, to: c.Points[len(c.Points)-1].To}
	if c.Time && !c.Bars && lowest > 0 && highest > logMin*lowest {
		s.log, s.bottom, s.top = true, math.Floor(math.Log10(lowest)), math.Ceil(math.Log10(highest))
		for power := s.bottom; power <= s.top; power++ {
			s.labels = append(s.labels, c.Format(math.Pow(10, power)))
		}
		return s
	}

	// The upper edge is a whole number of steps, so that the topmost line is drawn on it.
	step := c.step(highest)
	if c.Bars && highest == math.Trunc(highest) {
		// There are no halves of a few things that are counted.
		step = max(step, 1)
	}
	s.top = step * max(math.Ceil(highest/step), 1)
	for v := 0.0; v <= s.top*1.0001; v += step {
		s.labels = append(s.labels, c.Format(v))
	}

	return s
}

// extremes returns the lowest and the highest value that is drawn: for bars, the sum of their parts.
func (c *Chart) extremes() (lowest, highest float64) {
	lowest = math.Inf(1)
	for _, p := range c.Points {
		sum := 0.0
		for _, v := range p.Values {
			if math.IsNaN(v) {
				continue
			}

			sum += v
			if !c.Bars {
				lowest, highest = min(lowest, v), max(highest, v)
			}
		}
		if c.Bars {
			highest = max(highest, sum)
		}
	}

	return lowest, highest
}

// timeSteps are the steps, in seconds, of a grid of times that is easy to read.
var timeSteps = []float64{15, 30, 60, 120, 300, 600, 900, 1800, 3600, 2 * 3600, 3 * 3600, 6 * 3600, 12 * 3600}

// step returns the distance between the lines of the grid.
func (c *Chart) step(highest float64) float64 {
	rough := highest / 4
	last := timeSteps[len(timeSteps)-1]
	switch {
	case !c.Time || rough <= 10:
		return niceStep(highest)
	case rough <= last:
		fits := func(step float64) bool { return rough <= step*1.0001 }
		return timeSteps[slices.IndexFunc(timeSteps, fits)]
	}

	return last * niceStep(highest/last)
}

// niceStep returns the step of a grid with about four lines up to highest: 1, 2 or 5 times
// a power of ten.
func niceStep(highest float64) float64 {
	if highest <= 0 {
		return 1
	}

	rough := highest / 4
	// Steps of 1, 2 and 5 are those that people count in.
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	for _, m := range []float64{1, 2, 5} {
		if rough <= m*power*1.0001 {
			return m * power
		}
	}

	return 10 * power
}

func (s scale) x(t time.Time) float64 {
	return size * float64(t.Sub(s.from)) / float64(s.to.Sub(s.from))
}

func (s scale) y(v float64) float64 {
	if s.log {
		v = max(math.Log10(v), s.bottom)
	}

	return size * (s.top - v) / (s.top - s.bottom)
}

// SVG draws the chart. It returns "" for a chart without points.
func (c *Chart) SVG() template.HTML {
	if len(c.Points) == 0 {
		return ""
	}

	role := "img"
	if c.Link != nil || c.LinkValue != nil {
		// Screen readers do not look for links in an image.
		role = "group"
	}

	s := c.scale()
	var b strings.Builder
	b.WriteString(`<div class="plot"><ol class="ticks" aria-hidden="true">`)
	for _, label := range slices.Backward(s.labels) {
		fmt.Fprintf(&b, `<li>%s</li>`, html.EscapeString(label))
	}
	fmt.Fprintf(&b, `</ol><svg class="chart" viewBox="0 0 %d %d" preserveAspectRatio="none" role="%s" aria-label="%s">`,
		size, size, role, html.EscapeString(c.Title))
	c.drawGrid(&b, s)
	c.drawValues(&b, s)
	c.drawMarks(&b, s)
	c.drawLinks(&b, s)
	// The script makes it move.
	fmt.Fprintf(&b, `</svg><div class="cursor" role="slider" tabindex="0" aria-label="%s" aria-valuemin="1" `+
		`aria-valuemax="%d" aria-valuenow="%d"></div><svg class="dates" aria-hidden="true">`,
		html.EscapeString(c.Title), len(c.Points), len(c.Points))
	c.drawTimes(&b, s)
	b.WriteString("</svg></div>")

	// It holds nothing but our own numbers, and texts that are escaped.
	return template.HTML(b.String())
}

// Spark draws the values alone, without a grid, labels and links. It returns "" for a chart without points.
func (c *Chart) Spark() template.HTML {
	if len(c.Points) == 0 {
		return ""
	}

	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="spark" viewBox="0 0 %d %d" preserveAspectRatio="none" aria-hidden="true">`, size, size)
	c.drawValues(&b, c.scale())
	b.WriteString("</svg>")

	return template.HTML(b.String())
}

func (c *Chart) drawValues(b *strings.Builder, s scale) {
	if c.Bars {
		c.drawBars(b, s)
	} else {
		c.drawLines(b, s)
	}
}

func (c *Chart) drawGrid(b *strings.Builder, s scale) {
	b.WriteString(`<path class="grid" d="`)
	for i := range s.labels {
		fmt.Fprintf(b, "M0 %sh%d", short(size*float64(i)/float64(len(s.labels)-1)), size)
	}
	b.WriteString(`"/>`)
}

// drawMarks draws what happened as lines from top to bottom.
func (c *Chart) drawMarks(b *strings.Builder, s scale) {
	for _, m := range c.Marks {
		fmt.Fprintf(b, `<path class="mark" d="M%s 0v%d"><title>%s</title></path>`,
			short(s.x(m.At)), size, html.EscapeString(m.Text))
	}
}

// labelsMax bounds the letters of the times below a chart: a narrow one leaves out every other time.
const labelsMax = 50

// drawTimes prints the times of some points, evenly spaced.
func (c *Chart) drawTimes(b *strings.Builder, s scale) {
	layout, span := "Jan 2 15:04", s.to.Sub(s.from)
	switch {
	case span > 300*24*time.Hour:
		layout = "Jan 2006"
	case c.Bucket >= 24*time.Hour:
		layout = "Jan 2"
	case c.Bucket < time.Minute:
		layout = "15:04:05"
	case span <= 25*time.Hour:
		layout = "15:04"
	}

	every := int(math.Ceil(float64(len(c.Points)*(len(layout)+1)) / labelsMax))
	for i := 0; i < len(c.Points); i += every {
		// The end of a long one would be cut off at the right edge.
		x := s.middle(c.Points[i]) * 100 / size
		if len(layout) > 6 && x > 92 {
			return
		}
		fmt.Fprintf(b, `<text x="%s%%" y="14" text-anchor="middle">%s</text>`, short(x), c.Points[i].At.Format(layout))
	}
}

// middle returns where the middle of a point's bucket is drawn.
func (s scale) middle(p Point) float64 { return (s.x(p.At) + s.x(p.To)) / 2 }

// Extent returns where a point's bucket is drawn, from its left to its right edge.
func (c *Chart) Extent(p Point) string {
	s := scale{from: c.Points[0].At, to: c.Points[len(c.Points)-1].To}
	return short(s.x(p.At)) + " " + short(s.x(p.To))
}

// Place returns where a mark is drawn, as Extent has it.
func (c *Chart) Place(m Mark) string { return c.Extent(Point{At: m.At, To: m.At}) }

// Ends returns what Edges returns for a point, in one text; "" without it.
func (c *Chart) Ends(p Point) string {
	if c.Edges == nil {
		return ""
	}
	from, to := c.Edges(p)

	return from + " " + to
}

// Class returns the style of the colour of a name.
func (c *Chart) Class(i int) string {
	if class := c.Classes[i]; class != "" {
		return class
	}

	return "c" + strconv.Itoa(i+1)
}

// drawBars draws all bars of one colour as a single path, which keeps the page small.
func (c *Chart) drawBars(b *strings.Builder, s scale) {
	paths := make([]strings.Builder, len(c.Names))
	for _, p := range c.Points {
		for i, shape := range c.bar(s, p) {
			paths[i].WriteString(shape)
		}
	}

	for i := range paths {
		fmt.Fprintf(b, `<path class="bar %s" d="%s"/>`, c.Class(i), paths[i].String())
	}
}

// barWidthMax is the share of the drawing that a bar may take.
const barWidthMax = size / 8

// bar returns the shapes of a bar's parts; "" for those without a height.
func (c *Chart) bar(s scale, p Point) []string {
	left, width := s.x(p.At), s.x(p.To)-s.x(p.At)
	// A tenth is the gap between the bars. One of a short time must be seen.
	drawn := max(min(0.9*width, barWidthMax), 2)
	left += (width - drawn) / 2

	shapes := make([]string, len(p.Values))
	base := 0.0
	for i, v := range p.Values {
		if !(v > 0) { // nothing, or NaN
			continue
		}

		top := s.y(base + v)
		shapes[i] = box(left, top, drawn, s.y(base)-top)
		base += v
	}

	return shapes
}

// box returns the shape of a rectangle.
func box(left, top, width, height float64) string {
	return fmt.Sprintf("M%s %sh%sv%sh-%sz", short(left), short(top), short(width), short(height), short(width))
}

// drawLines draws a line for each name, which ends where a value is missing.
func (c *Chart) drawLines(b *strings.Builder, s scale) {
	for i := range c.Names {
		var line, dots strings.Builder
		pen, end := "M", time.Time{}
		for _, p := range c.Points {
			if math.IsNaN(p.Values[i]) || p.At.After(end) {
				pen = "M"
			}
			end = p.To
			if math.IsNaN(p.Values[i]) {
				continue
			}

			x, y := short(s.middle(p)), short(s.y(p.Values[i]))
			fmt.Fprintf(&line, "%s%s %s", pen, x, y)
			// A line of no length has two round ends: a dot.
			fmt.Fprintf(&dots, "M%s %sh0", x, y)
			pen = "L"
		}

		fmt.Fprintf(b, `<path class="line %s" d="%s"/><path class="dots %s" d="%s"/>`,
			c.Class(i), line.String(), c.Class(i), dots.String())
	}
}

// drawLinks draws what the mouse points at: for each point a column as high as the drawing, which
// describes the point and links to its requests, and above it the values that have another link.
func (c *Chart) drawLinks(b *strings.Builder, s scale) {
	var values strings.Builder
	for _, p := range c.Points {
		left := s.x(p.At)
		column := box(left, 0, s.x(p.To)-left, size)
		shape := fmt.Sprintf(`<title>%s</title><path d="%s"/>`, html.EscapeString(c.describe(p)), column)

		// The keyboard reaches the same links in the table, where they have a text.
		if c.Link != nil {
			fmt.Fprintf(b, `<a href="%s" tabindex="-1">%s</a>`, html.EscapeString(c.Link(p)), shape)
		} else {
			fmt.Fprintf(b, `<g>%s</g>`, shape)
		}

		for i, shape := range c.targets(s, p) {
			if to := c.ValueAddress(p, i); to != "" && shape != "" {
				fmt.Fprintf(&values, `<a href="%s" tabindex="-1"><title>%s</title><path d="%s"/></a>`,
					html.EscapeString(to), html.EscapeString(c.describeValue(p, i)), shape)
			}
		}
	}

	// Above the columns, or the mouse would not reach them.
	b.WriteString(values.String())
}

// targets returns the shapes of a point's values for the mouse: the parts of its bar, or a box around each
// dot.
func (c *Chart) targets(s scale, p Point) []string {
	if c.Bars {
		return c.bar(s, p)
	}

	shapes := make([]string, len(p.Values))
	for i, v := range p.Values {
		if !math.IsNaN(v) {
			shapes[i] = box(s.middle(p)-8, s.y(v)-25, 16, 50)
		}
	}

	return shapes
}

// short prints a place on the drawing, rounded to a tenth of a unit.
func short(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// describe returns a point in words.
func (c *Chart) describe(p Point) string {
	var parts []string
	for i, name := range c.Names {
		parts = append(parts, name+" "+c.Value(p.Values[i]))
	}

	return c.When(p) + ": " + strings.Join(parts, ", ")
}

// describeValue returns one value of a point in words.
func (c *Chart) describeValue(p Point, i int) string {
	return c.When(p) + ": " + c.Names[i] + " " + c.Value(p.Values[i])
}

// List returns the address of the requests of a name at any time, or "".
func (c *Chart) List(i int) string {
	if i >= len(c.Lists) {
		return ""
	}

	return c.Lists[i]
}

// When prints the time at which a point's bucket begins.
func (c *Chart) When(p Point) string {
	switch {
	case c.Bucket >= 24*time.Hour:
		return p.At.Format(time.DateOnly)
	case c.Bucket < time.Minute:
		return p.At.Format("2006-01-02 15:04:05 MST")
	}

	return p.At.Format("2006-01-02 15:04 MST")
}

// Value prints a value, or a dash if it is missing.
func (c *Chart) Value(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}

	return c.Format(v)
}

// Address returns the address that a point in the table links to, or "".
func (c *Chart) Address(p Point) string {
	if c.Link == nil || c.bare {
		return ""
	}

	return c.Link(p)
}

// ValueAddress returns the address that one value of a point in the table links to, or
// "". The keyboard reaches it there.
func (c *Chart) ValueAddress(p Point, i int) string {
	if c.LinkValue == nil || !(p.Values[i] > 0) {
		return ""
	}

	return c.LinkValue(p, i)
}
