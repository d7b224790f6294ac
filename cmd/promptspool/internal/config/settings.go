package config

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// ShownSetting is one setting, as it may be shown: a secret is masked.
type ShownSetting struct {
	Setting string `json:"setting"`
	Value   string `json:"value"`
	From    string `json:"from"` // --flag, VARIABLE, FILE:LINE or "default"
}

// SettingsOf returns all settings of the role that c would run, in the order of its flags; redact is last.
func SettingsOf(c *cli.Context) []ShownSetting {
	var all []ShownSetting
	r := Read(c)
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if name == "help" {
			continue
		}

		s := ShownSetting{Setting: name, Value: r.Text(name), From: "default"}
		if _, repeated := f.(repeatedFlag); repeated {
			s.Value = strings.Join(r.List(name), ", ")
		}
		switch {
		// It is shown, because people look for the database; only its password is not.
		case name == "archive":
			s.Value = ShowArchive(s.Value)
		case IsSecret(name) && s.Value != "":
			s.Value = "[secret]"
		}
		if from := origin(c, name); from != "" && hasValue(c, name) {
			s.From = from
		}
		all = append(all, s)
	}

	rules, _ := c.App.Metadata[rulesKey].([]placedRule)
	for _, rule := range rules {
		all = append(all, ShownSetting{Setting: "redact", Value: rule.String(), From: rule.place})
	}
	return all
}

// IsSecret reports whether a setting's value must not be shown.
func IsSecret(name string) bool {
	return strings.HasSuffix(name, "key") || strings.HasSuffix(name, "secret") || strings.HasSuffix(name, "password")
}
