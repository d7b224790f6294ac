package secrets

import (
	"bytes"
	"strings"
)

// isCredential reports whether a member of kwargs, args or parameters is a credential,
// whatever its value is. This rule is older than the others and looks at the name as it
// is written.
func isCredential(name string) bool {
	if len(name) < len("api_key") {
		return false
	}

	name = strings.ToLower(name)
	return name == "api_key" || strings.HasSuffix(name, "_api_key") ||
		name == "authorization" || strings.HasPrefix(name, "aws_secret")
}

// credentialNames are the names, as simpleName writes them, whose text is a credential.
// There is no rule for everything that ends in "token": tokenizers have an eos_token,
// pages a next_token, and counts are called max_tokens.
var credentialNames = map[string]bool{
	"token": true, "idtoken": true, "azureadtoken": true, "hftoken": true,
	"githubtoken": true, "slacktoken": true, "bottoken": true, "usertoken": true,
	"oauthtoken": true, "jwttoken": true, "sastoken": true, "jwt": true,
	"bearer": true, "secret": true, "pwd": true,
	"cookie": true, "cookies": true, "setcookie": true, "sessioncookie": true, "authcookie": true,
}

// credentialEndings end names, as simpleName writes them, whose text is a credential.
var credentialEndings = []string{
	"apikey", "secretkey", "secretaccesskey", "privatekey", "authkey", "subscriptionkey",
	"clientsecret", "appsecret",
	"apitoken", "accesstoken", "authtoken", "bearertoken", "refreshtoken", "sessiontoken", "securitytoken",
	"password", "passwd", "passphrase", "authorization",
}

// isCredentialText reports whether a member's text is a credential by its name, as
// simpleName writes it.
func isCredentialText(name []byte) bool {
	if credentialNames[string(name)] || bytes.HasPrefix(name, []byte("awssecret")) {
		return true
	}

	for _, ending := range credentialEndings {
		if cut := len(name) - len(ending); cut >= 0 && string(name[cut:]) == ending {
			return true
		}
	}
	return false
}

// holdsArguments reports whether a member holds a call's arguments or headers, by its
// name as simpleName writes it.
func holdsArguments(name []byte) bool {
	return string(name) == "args" || string(name) == "parameters" ||
		bytes.HasSuffix(name, []byte("kwargs")) || bytes.HasSuffix(name, []byte("headers"))
}

// nameBytesMax bounds the names that are compared; no credential has a longer one.
const nameBytesMax = 64

// simpleName appends a name in lower case, without - _ . and blanks.
func simpleName(b, name []byte) []byte {
	for _, c := range name {
		switch kind := byteKinds[c]; {
		case kind&isUpper != 0:
			b = append(b, c|0x20)
		case kind&(isLower|isDigit) != 0:
			b = append(b, c)
		}
	}
	return b
}

// endingPairs marks the last two letters of every name that the functions above accept.
var endingPairs = func() (pairs [32][32]bool) {
	const endings = "key token jwt bearer secret pwd cookie cookies passwd passphrase password " +
		"authorization args parameters headers"

	for _, ending := range strings.Fields(endings) {
		pairs[ending[len(ending)-2]&31][ending[len(ending)-1]&31] = true
	}
	return pairs
}()

// mayBeCredential reports whether a name of at least three bytes needs a closer look. It
// rules out most names by two letters.
func mayBeCredential(name []byte) bool {
	n := len(name)
	return endingPairs[name[n-2]&31][name[n-1]&31] || name[0]|0x20 == 'a' && name[1]|0x20 == 'w'
}

// IsAttribute reports whether an attribute of a span is a credential by its key, such as
// llm.api_key or http.request.header.cookie. Headers have more such names than other
// attributes have.
func IsAttribute(key []byte) bool {
	if len(key) < 3 || len(key) > 4*nameBytesMax {
		return false
	}

	simple := simpleName(make([]byte, 0, 4*nameBytesMax), key)
	if isCredentialText(simple) {
		return true
	}

	last := key[bytes.LastIndexByte(key, '.')+1:]
	return bytes.Contains(simple, []byte("header")) && isCredentialText(simpleName(nil, last))
}
