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
	"unicode/utf8"
)

// Chart is a series of numbers over time. The server draws it as SVG, and prints the same
// as a table for people who cannot see the drawing.
type Chart struct {
	Title  string
	Names  []string // of the lines, or of a bar's parts; at most LinesMax
	Points []Point  // ordered by time
	Format func(float64) string
	Bad    int           // the name, counted from 1, that has the colour of failures; 0 if none
	Bars   bool          // stacked bars instead of lines
	Time   bool          // values are seconds, so the grid is in minutes and hours
	Bucket time.Duration // the time that one point covers

	// Link returns the address that a bar or a point links to. Nil if there is none.
	Link func(Point) string

	// LinkValue returns the address that one value of a point links to, or "". Nil if
	// there are none.
	LinkValue func(p Point, i int) string

	// LinkName returns the address that a name of the legend links to. Nil if there is
	// none.
	LinkName func(i int) string

	bare bool // there are no links in the table, because another chart has the same ones
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

// Sizes in units of the drawing. The page scales it, together with its letters, to its own width.
const (
	Width        = 460
	Height       = 190
	marginLeft   = 60 // or more: see scale
	marginRight  = 8
	marginTop    = 10
	MarginBottom = 24

	TextSize = 15 // the largest size of its letters, set by style.css; wide screens have smaller ones
	labelGap = 6  // between a label and the axis

	barWidthMax = 40
)

// scale maps times and values to places on the drawing.
type scale struct {
	from, to time.Time // at the inner left and right edge
	top      float64   // the value at the upper edge; the lower one is 0
	left     float64   // the inner left edge, to the right of the labels
	ticks    []tick
}

// tick is a line of the grid, with its label.
type tick struct {
	value float64
	label string
}

func (c *Chart) scale() scale {
	// The upper edge is a whole number of steps, so that the topmost line is drawn on it.
	highest := c.highest()
	step := c.step(highest)
	s := scale{
		from: c.Points[0].At,
		to:   c.Points[len(c.Points)-1].To,
		top:  step * max(math.Ceil(highest/step), 1),
		left: marginLeft,
	}

	// The labels get the space that they need. Otherwise the drawing's edge would cut off
	// their beginnings.
	step = c.step(s.top)
	for v := 0.0; v <= s.top*1.0001; v += step {
		label := c.Format(v)
		s.ticks = append(s.ticks, tick{v, label})
		s.left = max(s.left, math.Ceil(textWidth(label)+labelGap))
	}

	return s
}

// highest returns the highest value that is drawn: for bars, the sum of their parts.
func (c *Chart) highest() float64 {
	highest := 0.0
	for _, p := range c.Points {
		sum := 0.0
		for _, v := range p.Values {
			if math.IsNaN(v) {
				continue
			}

			sum += v
			if !c.Bars {
				highest = max(highest, v)
			}
		}
		if c.Bars {
			highest = max(highest, sum)
		}
	}

	return highest
}

// textWidth returns about the most space that a label takes. Its letters are measured in DejaVu Sans,
// which is wider than the fonts of most systems.
func textWidth(label string) float64 { return 0.66 * TextSize * float64(utf8.RuneCountInString(label)) }

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
	share := float64(t.Sub(s.from)) / float64(s.to.Sub(s.from))

	return s.left + share*(Width-s.left-marginRight)
}

func (s scale) y(v float64) float64 {
	return Height - MarginBottom - v/s.top*(Height-marginTop-MarginBottom)
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
	fmt.Fprintf(&b, `<svg class="chart" viewBox="0 0 %d %d" role="%s" aria-label="%s">`,
		Width, Height, role, html.EscapeString(c.Title))
	c.drawGrid(&b, s)
	if c.Bars {
		c.drawBars(&b, s)
	} else {
		c.drawLines(&b, s)
	}
	b.WriteString("</svg>")

	// It holds nothing but our own numbers, and texts that are escaped.
	return template.HTML(b.String())
}

func (c *Chart) drawGrid(b *strings.Builder, s scale) {
	for _, t := range s.ticks {
		y := s.y(t.value)
		fmt.Fprintf(b, `<line class="grid" x1="%g" x2="%d" y1="%.1f" y2="%.1f"/>`,
			s.left, Width-marginRight, y, y)
		fmt.Fprintf(b, `<text x="%g" y="%.1f" text-anchor="end">%s</text>`,
			s.left-labelGap, y+4, html.EscapeString(t.label))
	}

	c.drawTimes(b, s)
}

// drawTimes prints the times of as many points, evenly spaced, as the axis has space for.
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

	// A label may be a letter longer than its layout.
	half := textWidth(layout+" ") / 2
	every := int(math.Ceil(float64(len(c.Points)) * (2*half + TextSize) / (Width - s.left - marginRight)))
	for i := 0; i < len(c.Points); i += every {
		if x := s.middle(c.Points[i]); x >= half && x+half <= Width {
			fmt.Fprintf(b, `<text x="%s" y="%d" text-anchor="middle">%s</text>`,
				short(x), Height-6, c.Points[i].At.Format(layout))
		}
	}
}

// middle returns where the middle of a point's bucket is drawn.
func (s scale) middle(p Point) float64 { return (s.x(p.At) + s.x(p.To)) / 2 }

// Class returns the style of the colour of a name.
func (c *Chart) Class(i int) string {
	if i == c.Bad-1 {
		return "c-bad"
	}

	return "c" + strconv.Itoa(i+1)
}

// drawBars draws all bars of one colour as a single path, which keeps the page small.
func (c *Chart) drawBars(b *strings.Builder, s scale) {
	paths := make([]strings.Builder, len(c.Names))
	var links strings.Builder
	for _, p := range c.Points {
		for i, shape := range c.bar(s, p) {
			paths[i].WriteString(shape)
			if to := c.ValueAddress(p, i); to != "" {
				fmt.Fprintf(&links, `<a href="%s" tabindex="-1"><title>%s</title><path d="%s"/></a>`,
					html.EscapeString(to), html.EscapeString(c.describeValue(p, i)), shape)
			}
		}
	}

	for i := range paths {
		fmt.Fprintf(b, `<path class="bar %s" d="%s"/>`, c.Class(i), paths[i].String())
	}
	c.drawColumns(b, s)
	// Above the columns, or the mouse would not reach them.
	b.WriteString(links.String())
}

// bar returns the shapes of a bar's parts; "" for those without a height.
func (c *Chart) bar(s scale, p Point) []string {
	left := s.x(p.At)
	width := max(s.x(p.To)-left, 1)
	// Space for a gap between the bars.
	if width > 4 {
		left, width = left+0.5, width-1
	}
	if width > barWidthMax {
		left, width = left+(width-barWidthMax)/2, barWidthMax
	}

	shapes := make([]string, len(p.Values))
	base := 0.0
	for i, v := range p.Values {
		if !(v > 0) { // nothing, or NaN
			continue
		}

		top := s.y(base + v)
		shapes[i] = fmt.Sprintf("M%s %sh%sv%sh-%sz",
			short(left), short(top), short(width), short(s.y(base)-top), short(width))
		base += v
	}

	return shapes
}

func (c *Chart) drawLines(b *strings.Builder, s scale) {
	for i := range c.Names {
		var line, dots strings.Builder
		pen := "M"
		for _, p := range c.Points {
			if math.IsNaN(p.Values[i]) {
				pen = "M" // the line is interrupted
				continue
			}

			x, y := short(s.middle(p)), short(s.y(p.Values[i]))
			fmt.Fprintf(&line, "%s%s %s", pen, x, y)
			// A line of no length has two round ends: a dot.
			fmt.Fprintf(&dots, "M%s %sh0", x, y)
			pen = "L"
		}

		fmt.Fprintf(b, `<path class="line %s" d="%s"/>`, c.Class(i), line.String())
		if c.LinkValue == nil {
			fmt.Fprintf(b, `<path class="dots %s" d="%s"/>`, c.Class(i), dots.String())
		}
	}

	if c.LinkValue != nil {
		c.drawLinkedDots(b, s)
		return
	}
	c.drawColumns(b, s)
}

// drawColumns draws what the mouse points at: for each point a column as high as the
// drawing, which describes the point and links to its requests.
func (c *Chart) drawColumns(b *strings.Builder, s scale) {
	for _, p := range c.Points {
		left := s.x(p.At)
		width := max(s.x(p.To)-left, 1)
		shape := fmt.Sprintf(`<title>%s</title><path d="M%s %dh%sV%dh-%sz"/>`,
			html.EscapeString(c.describe(p)),
			short(left), marginTop, short(width), Height-MarginBottom, short(width))

		// The keyboard reaches the same links in the table, where they have a text.
		if c.Link != nil {
			fmt.Fprintf(b, `<a href="%s" tabindex="-1">%s</a>`, html.EscapeString(c.Link(p)), shape)
		} else {
			fmt.Fprintf(b, `<g>%s</g>`, shape)
		}
	}
}

// drawLinkedDots draws the values of lines as dots that each link somewhere.
func (c *Chart) drawLinkedDots(b *strings.Builder, s scale) {
	for _, p := range c.Points {
		for i, v := range p.Values {
			if math.IsNaN(v) {
				continue
			}

			fmt.Fprintf(b, `<a href="%s" tabindex="-1"><title>%s</title>`,
				html.EscapeString(c.LinkValue(p, i)), html.EscapeString(c.describeValue(p, i)))
			fmt.Fprintf(b, `<circle class="%s" cx="%s" cy="%s" r="3"/></a>`,
				c.Class(i), short(s.middle(p)), short(s.y(v)))
		}
	}
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

// NameAddress returns the address that a name of the legend links to, or "".
func (c *Chart) NameAddress(i int) string {
	if c.LinkName == nil {
		return ""
	}

	return c.LinkName(i)
}
