// Package transfer copies everything that one server's database holds into another one,
// and proves that both hold the same.
//
// A copy can be interrupted and resumed. Nothing else may write to either database
// meanwhile.
package transfer
