// Package query defines what a search and a statistic over the rows of an account mean.
//
// It is the oracle: Query.Match and databasetest.Select define the rows that a search finds,
// Statistics the counts of them. Stores answer from indexes, column blocks and summaries
// instead, and must give the same answers; package databasetest compares them.
//
// The files, by the question that they answer:
//
//   - which rows match: query.go (a search and its limits), filter.go (groups of conditions),
//     operator.go (a new operator), condition.go, field.go and content.go (a new field),
//     text.go (what an index of words knows of a query), may_hold.go (words that a row cannot have)
//   - in which order, and which page: order.go, finder.go, tops.go (the first rows of a packed block)
//   - what is counted: analytics.go and analytics_answer.go, template_versions.go, over
//     dimension.go (by model, by tag ...), series.go (by time), scores.go, tally.go and
//     histogram.go (of a bucket)
//   - what is compared: comparison.go (two versions of a template, the authors of a score)
//   - what is counted ahead, of rows that a store packs: summary.go, summary_merge.go
//   - which values a field has: suggest.go
//
// All sums are of integers, so that neither the order of rows nor merged summaries change
// them.
package query
