// Package query defines what a search and a statistic over the rows of an account mean.
//
// It is the oracle: Query.Match and Query.Select say which rows a search finds,
// Statistics what is counted of them. Stores answer from indexes, column blocks and
// summaries instead, and must give the same answers; package databasetest compares them.
//
// Compile turns a search into a Query, a tree of Conditions over Subjects. A Finder makes
// a page of the rows that a store finds. Analytics and TemplateVersions add up rows, all
// sums being of integers, so that neither the order of rows nor merged summaries change
// them.
package query
