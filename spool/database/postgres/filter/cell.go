package filter

import (
	"math"
	"slices"

	"promptspool/spool/archive/query"
)

// Numbers of scores have terms of cells, so that a range is a list of terms. Every one of
// cellPoints is a cell, and so is each gap between two of them, all below and all above.
// They are numbered from the lowest: points have odd numbers, gaps even ones.

// cellPoints are where people set bounds: the hundredths up to 1, and the integers up to 100.
var cellPoints = func() (points []float64) {
	for i := range 100 {
		points = append(points, float64(i)/100)
	}
	for i := range 100 {
		points = append(points, float64(i+1))
	}
	return points
}()

// cellOf returns the cell of a number.
func cellOf(x float64) int {
	i, found := slices.BinarySearch(cellPoints, x)
	if found {
		return 2*i + 1
	}
	return 2 * i
}

// cellsOf returns the first and the last cell that a range meets. whole is false if it meets one
// of them in part.
func cellsOf(r query.Range) (first, last int, whole bool) {
	const point = 1
	first, last = cellOf(r.Least), cellOf(r.Most)

	whole = (first&point != 0 || first == 0 && math.IsInf(r.Least, -1)) &&
		(last&point != 0 || last == 2*len(cellPoints) && math.IsInf(r.Most, 1))
	if first&point != 0 && r.AboveOnly {
		first++
	}
	if last&point != 0 && r.BelowOnly {
		last--
	}

	return first, last, whole
}
