package dashboard

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
	"time"
)

// chart is a series of numbers over time, drawn by the server as SVG, with the same as a table for those who cannot see it.
type chart struct {
	Title  string
	Names  []string // of the lines or of the parts of a bar; at most 6, which is how many colours there are
	Points []point  // by time
	Format func(float64) string
	Bars   bool          // stacked; else lines
	Bucket time.Duration // how long a point stands for

	// Link is the address behind a bar or a point; nil for none.
	Link func(point) string

	// LinkValue is the address behind one value of a point, instead of Link.
	LinkValue func(p point, i int) string
}

// point is the values of one bucket, one for each name; NaN where there is none.
type point struct {
	At     time.Time
	Values []float64
}

// Sizes in the units of the drawing. It is stretched to the width that it gets, and its letters with it.
const (
	chartWidth  = 460
	chartHeight = 190
	chartLeft   = 52
	chartRight  = 8
	chartTop    = 10
	chartBottom = 24
)

// scale puts values on the drawing.
type scale struct {
	from, to time.Time // of the drawing's inner left and right edge
	top      float64   // the value at the upper edge; the lower is 0
}

func (c *chart) scale() scale {
	s := scale{from: c.Points[0].At, to: c.Points[len(c.Points)-1].At.Add(c.Bucket)}
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
	s.top = niceStep(highest) * math.Ceil(highest/niceStep(highest))
	return s
}

// niceStep is the distance of about four lines of a grid up to highest: 1, 2 or 5 times a power of ten.
func niceStep(highest float64) float64 {
	if highest <= 0 {
		return 1
	}
	rough := highest / 4
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
	return chartLeft + share*(chartWidth-chartLeft-chartRight)
}

func (s scale) y(v float64) float64 {
	return chartHeight - chartBottom - v/s.top*(chartHeight-chartTop-chartBottom)
}

// SVG draws the chart; nothing if it has no points.
func (c *chart) SVG() template.HTML {
	if len(c.Points) == 0 {
		return ""
	}
	s := c.scale()
	var b strings.Builder
	role := "img"
	if c.Link != nil || c.LinkValue != nil {
		role = "group" // an image holds no links
	}
	fmt.Fprintf(&b, `<svg class="chart" viewBox="0 0 %d %d" role="%s" aria-label="%s">`, chartWidth, chartHeight, role, html.EscapeString(c.Title))
	c.grid(&b, s)
	if c.Bars {
		c.bars(&b, s)
	} else {
		c.lines(&b, s)
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) // numbers of ours, and texts that are escaped
}

func (c *chart) grid(b *strings.Builder, s scale) {
	step := niceStep(s.top)
	for v := 0.0; v <= s.top*1.0001; v += step {
		y := s.y(v)
		fmt.Fprintf(b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`,
			chartLeft, chartWidth-chartRight, y, y, chartLeft-6, y+4, html.EscapeString(c.Format(v)))
	}
	layout := time.DateOnly
	if c.Bucket < 24*time.Hour {
		layout = "Jan 2 15:04"
	}
	fmt.Fprintf(b, `<text x="%d" y="%d">%s</text>`, chartLeft, chartHeight-6, s.from.UTC().Format(layout))
	if last := c.Points[len(c.Points)-1].At; len(c.Points) > 1 {
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, chartWidth-chartRight, chartHeight-6, last.UTC().Format(layout))
	}
}

func (c *chart) bars(b *strings.Builder, s scale) {
	for _, p := range c.Points {
		left := s.x(p.At)
		width := max(s.x(p.At.Add(c.Bucket))-left, 1)
		if width > 4 {
			left, width = left+0.5, width-1
		}
		c.open(b, p)
		base := 0.0
		for i, v := range p.Values {
			if !(v > 0) {
				continue
			}
			top := s.y(base + v)
			c.openValue(b, p, i)
			fmt.Fprintf(b, `<rect class="c%d" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, i+1, left, top, min(width, 40), s.y(base)-top)
			c.shutValue(b)
			base += v
		}
		c.shut(b)
	}
}

func (c *chart) lines(b *strings.Builder, s scale) {
	for i := range c.Names {
		path, pen := strings.Builder{}, "M"
		for _, p := range c.Points {
			if math.IsNaN(p.Values[i]) {
				pen = "M"
				continue
			}
			fmt.Fprintf(&path, "%s%.1f %.1f", pen, s.x(p.At.Add(c.Bucket/2)), s.y(p.Values[i]))
			pen = "L"
		}
		fmt.Fprintf(b, `<path class="line c%d" d="%s"/>`, i+1, path.String())
	}
	for _, p := range c.Points {
		c.open(b, p)
		for i, v := range p.Values {
			if !math.IsNaN(v) {
				c.openValue(b, p, i)
				fmt.Fprintf(b, `<circle class="c%d" cx="%.1f" cy="%.1f" r="2.5"/>`, i+1, s.x(p.At.Add(c.Bucket/2)), s.y(v))
				c.shutValue(b)
			}
		}
		c.shut(b)
	}
}

// open begins what belongs to one point: a link to the requests behind it, and what is told when one points at it.
func (c *chart) open(b *strings.Builder, p point) {
	if c.Link != nil {
		fmt.Fprintf(b, `<a href="%s" tabindex="-1">`, html.EscapeString(c.Link(p)))
	} else {
		b.WriteString("<g>")
	}
	if c.LinkValue == nil {
		fmt.Fprintf(b, "<title>%s</title>", html.EscapeString(c.tell(p)))
	}
}

func (c *chart) shut(b *strings.Builder) {
	if c.Link != nil {
		b.WriteString("</a>")
	} else {
		b.WriteString("</g>")
	}
}

// openValue begins what belongs to one value of a point, if that has an address of its own.
func (c *chart) openValue(b *strings.Builder, p point, i int) {
	if c.LinkValue != nil {
		told := c.When(p) + ": " + c.Names[i] + " " + c.Value(p.Values[i])
		fmt.Fprintf(b, `<a href="%s" tabindex="-1"><title>%s</title>`, html.EscapeString(c.LinkValue(p, i)), html.EscapeString(told))
	}
}

func (c *chart) shutValue(b *strings.Builder) {
	if c.LinkValue != nil {
		b.WriteString("</a>")
	}
}

// tell says a point in words.
func (c *chart) tell(p point) string {
	var parts []string
	for i, name := range c.Names {
		parts = append(parts, name+" "+c.Value(p.Values[i]))
	}
	return c.When(p) + ": " + strings.Join(parts, ", ")
}

// When says when a point's bucket begins.
func (c *chart) When(p point) string {
	if c.Bucket >= 24*time.Hour {
		return p.At.UTC().Format(time.DateOnly)
	}
	return p.At.UTC().Format("2006-01-02 15:04 UTC")
}

// Value prints a value, or that there is none.
func (c *chart) Value(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return c.Format(v)
}

// ValueAddress is the address behind one value of a point; "" for none.
func (c *chart) ValueAddress(p point, i int) string {
	if c.LinkValue == nil || math.IsNaN(p.Values[i]) {
		return ""
	}
	return c.LinkValue(p, i)
}

// Address is the address behind a point; "" for none.
func (c *chart) Address(p point) string {
	if c.Link == nil {
		return ""
	}
	return c.Link(p)
}
