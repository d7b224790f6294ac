// Package prices computes what a model call costs, from tables of prices per token.
//
// All arithmetic is in integers: prices are in picodollars (a millionth of a millionth)
// per token, costs in billionths of a dollar, rounded once, half up, at the end. A model
// without a price has an unknown cost; there is no default.
package prices
