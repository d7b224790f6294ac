package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
	"promptspool/api/wire/secrets"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
	"promptspool/proxy/redact"
)

// tryCommand shows what redaction rules do.
func tryCommand() *cli.Command {
	return &cli.Command{
		Name: "try",
		Usage: "show what the redaction rules of a configuration file make of a record: the JSON in RECORD, " +
			"of stdin for -, or a sample",
		ArgsUsage: "FILE [RECORD]",
		Action:    tryConfig,
	}
}

// sampleRecord has one of everything that is built in, in the places where it is met most.
const sampleRecord = `{
  "function_name": "openai.ChatCompletion.create",
  "kwargs": {
    "model": "gpt-4o",
    "messages": [
      {"role": "user", "content": "Write to ann@example.com or call +1 415 555 0132.\nBearer abcdef0123456789"}
    ]
  },
  "request_response": {
    "choices": [{"message": {"tool_calls": [{"function": {
      "name": "pay",
      "arguments": "{\"card\": \"4111 1111 1111 1111\", \"email\": \"Ann@example.com\"}"
    }}]}}]
  },
  "tags": ["for ann@example.com"],
  "metadata": {"user": "ann@example.com", "key": "sk-0123456789abcdefghijkl"}
}`

func tryConfig(c *cli.Context) error {
	if c.NArg() < 1 || c.NArg() > 2 {
		return config.Usagef(c,
			"give the configuration file, and perhaps a file with a record to try it on; - reads stdin")
	}
	body, err := recordToTry(c.Args().Get(1))
	if err != nil {
		return err
	}
	object, err := wire.ParseObject(body)
	if err != nil {
		return err
	}

	// The record comes to the rules as it would from an app.
	body = secrets.Strip(body, object)
	var rules *redact.Rules
	err = config.EvaluateFile(newApp, "sidecar", c.Args().First(), func(c *cli.Context) error {
		r := config.Read(c)
		rules = r.RedactRules()
		return r.Err()
	})
	if err != nil {
		return err
	}

	counts := map[string]int{}
	result := rules.Body(body, func(rule, action string) { counts[rule+" "+action]++ })
	if err := print.JSON(c.App.Writer, json.RawMessage(result)); err != nil {
		return err
	}

	var met []string
	for rule, n := range counts {
		met = append(met, fmt.Sprintf("%s: %d", rule, n))
	}
	slices.Sort(met)
	if len(met) == 0 {
		met = []string{"no rule met anything"}
	}

	fmt.Fprintln(c.App.ErrWriter, strings.Join(met, ", "))
	return nil
}

// recordToTry reads a record; "" is the sample.
func recordToTry(path string) ([]byte, error) {
	if path == "" {
		return []byte(sampleRecord), nil
	}

	in, err := config.FileOrStdin(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()

	// One byte more than is taken: what is too long gets the error that an app would get.
	return io.ReadAll(io.LimitReader(in, wire.BodyBytesMax+1))
}
