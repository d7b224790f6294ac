// Package query defines what a search and a statistic over the rows of an account mean.
//
// It is the oracle: Query.Match and databasetest.Select define the rows that a search finds,
// databasetest.Statistics the counts of them. Stores answer from indexes, column blocks and summaries
// instead, and must give the same answers; package databasetest compares them.
//
// The files, by the question that they answer:
//
//   - which rows match: query.go (a search and its limits), condition.go (groups of conditions, a new
//     field), operator.go (a new operator), text.go (texts, and what an index of words knows of a query)
//   - in which order, and which page: order.go (with the first rows of a packed block), finder.go
//   - what is counted: analytics.go and parts.go, over series.go (by time, and by names),
//     scores.go and score_tally.go; measure.go (for alerts)
//   - what is compared: comparison.go (two versions of a template, the authors of a score)
//   - what is counted ahead, of rows that a store packs: summary.go, summary_merge.go
//   - which values a field has: suggest.go
//
// All sums are of integers, so that neither the order of rows nor merged summaries change
// them.
package query
