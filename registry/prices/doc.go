// Package prices says what a model call costs, from a table of prices per token.
//
// All arithmetic is of integers: prices are in picodollars (a millionth of a millionth) per token, costs in whole
// billionths of a dollar, rounded once, half up, at the end. What has no price costs nothing that is known: there is no default.
package prices
