// Command tools does for tests of other modules what takes modules that the program does not use:
//
//	tools baddisk FOLDER     serves a disk that breaks (spool/disk/disktest)
//	tools issuer             is an issuer of OpenID Connect (api/auth/oidc/oidctest)
//	tools description FILE   compares calls with the description of the API (api/openapitest)
package main

import (
	"errors"
	"fmt"
	"os"

	"promptspool/cmd/promptspool/e2e/baddisk"
	"promptspool/cmd/promptspool/e2e/description"
	"promptspool/cmd/promptspool/e2e/issuer"
)

func main() {
	err := errors.New("usage: see the package comment")
	switch args := os.Args[1:]; {
	case len(args) == 2 && args[0] == "baddisk":
		err = baddisk.Serve(args[1])
	case len(args) == 1 && args[0] == "issuer":
		err = issuer.Run(os.Stdin, os.Stdout)
	case len(args) == 2 && args[0] == "description":
		err = description.CheckFile(args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
