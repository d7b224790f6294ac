package main

import (
	"bytes"
	"strings"
	"testing"

	"promptspool/cmd/promptspool/internal/config"
)

func TestFlagsMayStandBehindArguments(t *testing.T) {
	for line, want := range map[string]string{
		"requests get ID":                        "requests get -- ID",
		"requests get ID -o json":                "requests get -o json -- ID",
		"requests get -o json ID":                "requests get -o json -- ID",
		"requests get ID --url=http://h --key k": "requests get --url=http://h --key k -- ID",
		"requests get A --key k B":               "requests get --key k -- A B",
		"requests get ID --help":                 "requests get --help",
		"requests get --key --help ID":           "requests get --key --help -- ID",
		"requests get -- --help":                 "requests get -- --help",
		"help requests get":                      "requests get --help",
		"requests help get":                      "requests get --help",
		"requests get help":                      "requests get -- help", // an id
		"requests search help":                   "requests search --help",
		"requests help":                          "requests --help",
		"help":                                   "--help",
		"help nope":                              "nope",
		"help requests serch":                    "requests serch",
		"nope --help":                            "nope --help",
		"requests get ID --frob x":               "requests get --frob -- ID x", // the library reports the unknown flag
		"requests get ID --key":                  "requests get --key -- ID",
		"requests get -- -o json":                "requests get -- -o json",
		"requests get - ID":                      "requests get -- - ID",
		"templates show --version -5 NAME":       "templates show --version -5 -- NAME",
		"templates show keys list":               "templates show -- keys list", // names of commands, as arguments
		"version":                                "version",
		"requests -o json get ID":                "requests get -o json -- ID",
		"-o json requests get ID":                "requests get -o json -- ID",
		"--utc requests get ID -ojson":           "requests get --utc -o json -- ID",
		"requests get ID -o=json":                "requests get -o=json -- ID",
		"-v":                                     "-v",
		"--help":                                 "--help",
		"":                                       "",
	} {
		app := newApp(&bytes.Buffer{}, &bytes.Buffer{})
		got := config.Permute(app, append([]string{"promptspool"}, strings.Fields(line)...))
		Equal(t, line, strings.Join(got[1:], " "), want)
	}

	Equal(t, "nothing at all", config.Permute(newApp(&bytes.Buffer{}, &bytes.Buffer{}), nil), []string(nil))
}
