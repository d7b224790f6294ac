package wire

import (
	"bytes"
	"strings"
)

// isCredential reports whether a member of kwargs, args or parameters is a credential whatever its value is.
func isCredential(name string) bool {
	if len(name) < len("api_key") {
		return false
	}
	name = strings.ToLower(name)
	return name == "api_key" || strings.HasSuffix(name, "_api_key") || name == "authorization" || strings.HasPrefix(name, "aws_secret")
}

// credentialNames are names, as simpleName writes them, whose text is a credential. Those of tokenizers (eos_token),
// of pages (next_token) and of counts (max_tokens) are not among them, so there is no rule for all that end so.
var credentialNames = map[string]bool{
	"token": true, "idtoken": true, "azureadtoken": true, "hftoken": true, "githubtoken": true, "slacktoken": true,
	"bottoken": true, "usertoken": true, "oauthtoken": true, "jwttoken": true, "sastoken": true, "jwt": true,
	"bearer": true, "secret": true, "pwd": true,
	"cookie": true, "cookies": true, "setcookie": true, "sessioncookie": true, "authcookie": true,
}

// credentialEndings end names whose text is a credential.
var credentialEndings = []string{
	"apikey", "secretkey", "secretaccesskey", "privatekey", "authkey", "subscriptionkey", "clientsecret", "appsecret",
	"apitoken", "accesstoken", "authtoken", "bearertoken", "refreshtoken", "sessiontoken", "securitytoken",
	"password", "passwd", "passphrase", "authorization",
}

// isCredentialText reports whether a member's text is a credential, by its name as simpleName writes it.
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

// holdsArguments reports whether a member holds the arguments of a call or the headers of one, by its name as
// simpleName writes it.
func holdsArguments(name []byte) bool {
	return string(name) == "args" || string(name) == "parameters" ||
		bytes.HasSuffix(name, []byte("kwargs")) || bytes.HasSuffix(name, []byte("headers"))
}

const nameBytesMax = 64 // a longer name is no credential's

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

// pairs has the last two letters of all names that the functions above accept, so that most names need no further
// look.
var pairs = func() (pairs [32][32]bool) {
	for _, ending := range strings.Fields("key token jwt bearer secret pwd cookie cookies passwd passphrase password " +
		"authorization args parameters headers") {
		pairs[ending[len(ending)-2]&31][ending[len(ending)-1]&31] = true
	}
	return pairs
}()

// mayBeCredential reports whether a name of at least three bytes needs a further look.
func mayBeCredential(name []byte) bool {
	n := len(name)
	return pairs[name[n-2]&31][name[n-1]&31] || name[0]|0x20 == 'a' && name[1]|0x20 == 'w'
}
