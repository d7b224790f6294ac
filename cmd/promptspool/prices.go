package main

import (
	"os"

	"github.com/urfave/cli/v2"

	"promptspool/registry/prices"
)

func pricesFlag() cli.Flag {
	return stringFlag("prices", "", "a `file` of model prices that goes before those that come with the program, in the form of model_prices_and_context_window.json")
}

// pricesOf reads --prices; a file that is not right is refused at the start.
func pricesOf(c *cli.Context) (*prices.Table, error) {
	path := text(c, "prices")
	if path == "" {
		return prices.BuiltIn(), nil
	}
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, usagef(c, "--prices: %v", err)
	}
	table, err := prices.Over(prices.BuiltIn(), file)
	if err != nil {
		return nil, usagef(c, "--prices: %s, %v", path, err)
	}
	return table, nil
}
