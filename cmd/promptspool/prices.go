package main

import (
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"promptspool/cmd/promptspool/internal/config"
	"promptspool/registry/prices"
)

// pricesFlag names a file of model prices.
func pricesFlag() cli.Flag {
	return config.TextFlag("prices", "",
		"a `file` of model prices that goes before those that come with the program, in the form of model_prices_and_context_window.json")
}

// pricesOf reads pricesFlag. A file that is wrong is refused when the server starts.
func pricesOf(r *config.Reader) *prices.Table {
	path := r.Text("prices")
	if path == "" {
		return prices.BuiltIn()
	}

	file, err := os.ReadFile(path)
	if err != nil {
		r.Note(fmt.Errorf("--prices: %w", err))
		return nil
	}
	table, err := prices.Over(prices.BuiltIn(), file)
	if err != nil {
		r.Note(fmt.Errorf("--prices: %s, %w", path, err))
	}
	return table
}
