package secrets

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// probe is a credential's value: of no known shape, and such as generators make.
const probe = "Zq7xW3kT9mB4vR8nL2pD6hY1sF5gJ0cQe"

// maskedBodies are bodies as clients of providers send them; PROBE stands for a credential.
var maskedBodies = []string{
	// Headers.
	`{"kwargs":{"extra_headers":{"helicone-auth":"Bearer PROBE"}}}`,
	`{"kwargs":{"extra_headers":{"X-Vault-Token":"PROBE"}}}`,
	`{"kwargs":{"default_headers":{"x-portkey-auth":"PROBE","X-Request-Token":"PROBE"}}}`,
	`{"kwargs":{"defaultHeaders":{"PRIVATE-TOKEN":"PROBE","cf-aig-token":"PROBE"}}}`,
	`{"kwargs":{"client":{"headers":{"X-Hub-Signature":"sha1=PROBE"}}}}`,
	`{"request_response":{"headers":{"x-csrf-token":"PROBE"}}}`,
	`{"headers":{"X-Auth":"PROBE"}}`,
	`{"input":{"request":{"headers":{"n":{"deeper-auth":"PROBE"}}}}}`,

	// Arguments.
	`{"kwargs":{"auth":"PROBE"}}`,
	`{"kwargs":{"x-functions-key":"PROBE","functionsKey":"PROBE"}}`,
	`{"kwargs":{"connection_string":"Endpoint=sb://x.example/;SharedAccessKey=PROBE"}}`,
	`{"kwargs":{"credential":"PROBE","credentials":"PROBE","vertex_credentials":"PROBE"}}`,
	`{"kwargs":{"pass":"PROBE"}}`,
	`{"kwargs":{"service_account_json":"{\"type\":\"service_account\",\"key\":\"PROBE\"}"}}`,
	`{"kwargs":{"signature":"PROBE"}}`,
	`{"parameters":{"model":"m","signature":"PROBE"}}`,
	`{"kwargs":{"webhook_secret":"PROBE","account_key":"PROBE"}}`,
	`{"args":[{"config":{"auth":"PROBE"}}]}`,
	`{"kwargs":{"credentials":{"auth":"PROBE"}}}`,

	// The top of a body.
	`{"API_KEY":"PROBE"}`,
	`{"Api-Key":"PROBE","apiKey":{"value":"PROBE"},"openai_api_key":["PROBE"]}`,
	`{"\u0041PI_KEY":"PROBE"}`,

	// Queries of URLs.
	`{"kwargs":{"base_url":"https://h.example/x?api_key=PROBE"}}`,
	`{"kwargs":{"base_url":"https://h.example/x?key=PROBE&alt=sse"}}`,
	`{"kwargs":{"base_url":"https:\/\/h.example\/x?alt=sse\u0026key=PROBE"}}`,
	`{"kwargs":{"url":"https://h.azurewebsites.net/api/f?code=PROBE"}}`,
	`{"kwargs":{"url":"https://h.example/?token=PROBE","n":1}}`,
	`{"metadata":{"url":"https://h.blob.core.windows.net/c?sv=2023&sig=PROBE%3D&se=1"}}`,
	`{"request_response":{"image":"https://h.example/i?X-Amz-Date=1&X-Amz-Signature=PROBE"}}`,
	`{"tags":["https://h.example/?X-Goog-Signature=PROBE","wss://h.example?access_token=PROBE"]}`,
	`{"attributes":[{"key":"url.full","value":{"stringValue":"https://h.example/x?q=a&apikey=PROBE#top"}}]}`,
	`{"kwargs":{"database":"postgres://h.example/db?user=a&password=PROBE"}}`,
	`{"kwargs":{"redirect":"https://h.example/#access_token=PROBE"}}`,
	`{"function_input":"{'base_url': 'https://h.example/v1?key=PROBE'}"}`,
	`{"function_input":"{\"base_url\":\"https://h.example/v1?a=b\\u0026key=PROBE\"}"}`,

	// In texts that are JSON or Python's repr.
	`{"function_input":"{'kwargs': {'X-Vault-Token': 'PROBE', 'connection_string': 'PROBE'}}"}`,
	`{"function_input":"{\"helicone-auth\":\"PROBE\"}"}`,

	// Web tokens.
	`{"metadata":{"note":"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.PROBE"}}`,
	`{"kwargs":{"messages":[{"role":"user","content":"see\neyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.PROBE, thanks"}]}}`,
	`{"tags":["session=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.PROBE;"]}`,
}

// keptBodies are bodies with something that only looks like a credential.
var keptBodies = []string{
	`{"kwargs":{"messages":[{"role":"assistant","content":[{"type":"thinking","signature":"PROBE"}]}]}}`,
	`{"kwargs":{"contents":[{"parts":[{"thoughtSignature":"PROBE","thought_signature":"PROBE"}]}]}}`,
	`{"request_response":{"content":[{"type":"thinking","thinking":"hm","signature":"PROBE"}]}}`,
	`{"args":[{"signature":"PROBE"}]}`,
	`{"kwargs":{"signature":"question, context -> answer: str","n":2}}`,
	`{"function_input":"{'messages': [{'type': 'thinking', 'signature': 'PROBE'}]}"}`,

	`{"kwargs":{"max_tokens":10,"token_count":"7","prompt_tokens":"9","next_token":"PROBE","eos_token":"PROBE"}}`,
	`{"kwargs":{"passage":"PROBE","author":"PROBE","authors":"PROBE","compass":"PROBE","oauth":"PROBE"}}`,
	`{"kwargs":{"authentication_mode":"none","requires_auth":"yes","token_type":"bearer","secretary":"Ann"}}`,
	`{"kwargs":{"auth":["a","b"],"pass":true,"credentials":{"region":"eu"},"connection_string":7}}`,
	`{"kwargs":{"key":"PROBE","code":"PROBE","sig":"PROBE","string":"PROBE","json":"PROBE"}}`,
	`{"tool":{"auth":"PROBE","pass":"PROBE","credentials":"PROBE","X-Vault-Token":"PROBE"}}`,
	`{"request_response":{"choices":[{"message":{"content":"{\"pass\": \"yes\", \"credentials\": \"MD, PhD\"}"}}]}}`,
	`{"kwargs":{"messages":[{"content":"{\"auth\": \"OAuth2\", \"signature\": \"f(x)\", \"code\": \"x = 1\"}"}]}}`,
	`{"API_KEYS":1,"my_keyboard":"PROBE","key":"PROBE","token":"PROBE","signature":"PROBE"}`,
	`{"headers":["helicone-auth","PROBE"]}`,

	`{"kwargs":{"url":"https://h.example/?page=2&next_page_token=PROBE&max_tokens=12345678&monkey=PROBE"}}`,
	`{"kwargs":{"url":"https://h.example/?code=42&key=name"}}`,
	`{"kwargs":{"url":"https://h.example/key=PROBE/token=PROBE"}}`,
	`{"kwargs":{"messages":[{"content":"https://h.example/?key=PROBE is what the docs show"}]}}`,
	`{"kwargs":{"messages":[{"content":"Call https://h.example/?key=PROBE"}]}}`,
	`{"kwargs":{"messages":[{"content":"https://h.example/?key=PROBE\nand more"}]}}`,
	`{"kwargs":{"messages":[{"content":"As in \"https://h.example/?key=PROBE\"."}]}}`,
	`{"kwargs":{"content":"?api_key=PROBE and api_key=PROBE"}}`,

	`{"tags":["eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9","eyJhbGciOiJIUzI1NiJ9.PROBE.PROBE","PROBE.PROBE.PROBE"]}`,
	`{"tags":["example.com.Zq7xW3kT9mB4vR8nL2pD6hY","v29.PROBE","xya29.PROBE","MSG.PROBE","sg.PROBE","hvs_PROBE"]}`,
	`{"tags":["dapinotebook_run_identifier_0123456789ab","fw_update_device_manager"]}`,
	`{"tags":["npm_config_registry_and_cache","secret_manager_key_name_of_project_and_more_words_12",` +
		`"sk_toggleable_label_of_a_container_which_has_a_long_name"]}`,
	`{"tags":["csk-learn-transformers-pipeline","glc_enable_and_the_rest_of_names","whsec_for_the_shop_and_others"]}`,
}

func TestProbesOfCredentialsAreMasked(t *testing.T) {
	for _, body := range maskedBodies {
		got := stripped(t, strings.ReplaceAll(body, "PROBE", probe))
		if strings.Contains(got, probe) || !strings.Contains(got, maskedText) {
			t.Errorf("%s\nis kept as %s", body, got)
		}
		parse(t, got)
	}
}

func TestProbesOfOtherTextsStay(t *testing.T) {
	for _, body := range keptBodies {
		body = strings.ReplaceAll(body, "PROBE", probe)
		same(t, "stripped", stripped(t, body), body)
	}
}

func TestOnlyTheValueInAQueryIsMasked(t *testing.T) {
	for _, tt := range []struct{ sent, want string }{
		{`{"u":"https://me:pw@h.example:8443/x?a=b&api_key=PROBE&c=d#top"}`,
			`{"u":"https://[masked]@h.example:8443/x?a=b&api_key=[masked]&c=d#top"}`},
		{`{"u":"https://h.example/?key=PROBE\u0026alt=sse\u0026token=x"}`,
			`{"u":"https://h.example/?key=[masked]\u0026alt=sse\u0026token=[masked]"}`},
		{`{"a":"{'u': 'https://h.example/?key=PROBE&a=b', 'c': 'https://h.example/?sig=PROBE"}`,
			`{"a":"{'u': 'https://h.example/?key=[masked]&a=b', 'c': 'https://h.example/?sig=[masked]"}`},
		{`{"u":"https://h.example/?api_key=&key=PROBE"}`, `{"u":"https://h.example/?api_key=&key=[masked]"}`},
		{`{"u":"https://h.example?x=1;code=PROBE"}`, `{"u":"https://h.example?x=1;code=[masked]"}`},
	} {
		sent := strings.ReplaceAll(tt.sent, "PROBE", probe)
		same(t, "stripped", stripped(t, sent), tt.want)
		same(t, "stripped again", stripped(t, tt.want), tt.want)
	}
}

// Every row of the table of names masks where it says, and nowhere else.
func TestEachNameCountsWhereItsRuleSays(t *testing.T) {
	bodies := map[place]string{
		inTexts:     `{"a":"{'NAME': 'PROBE', 'n': 1}"}`,
		inArguments: `{"kwargs":{"deep":[{"NAME":"PROBE"}]}}`,
		inHeaders:   `{"kwargs":{"extra_headers":{"NAME":"PROBE"}}}`,
		inQuery:     `{"u":"https://h.example/?NAME=PROBE"}`,
		directly:    `{"kwargs":{"model":"m","NAME":"PROBE"}}`,
	}
	implied := map[place]place{inHeaders: inArguments, directly: inArguments}

	for _, rule := range nameRules {
		name := map[match]string{whole: rule.name, ending: "x-" + rule.name, beginning: rule.name + "_x"}[rule.how]
		where := credentialPlaces(simpleName(nil, []byte(name)))
		for at, body := range bodies {
			body = strings.NewReplacer("NAME", name, "PROBE", probe).Replace(body)
			want := body
			if where&(at|implied[at]) != 0 {
				want = strings.Replace(body, probe, maskedText, 1)
			}
			same(t, rule.name, stripped(t, body), want)
		}
		if rule.where&^where != 0 || rule.source == "" {
			t.Errorf("%+v counts at %b", rule, where)
		}
	}
}

// sample returns a key of a shape. It was never issued.
func sample(s *keyShape) string {
	text := probe + probe + probe
	switch s.rest {
	case hexadecimal:
		text = strings.Repeat("0a1b2c3d4e5f6789", 4)
	case capitals:
		return s.prefix + "Z7XW3KT9MB4VR8NL"
	case dotted:
		text = probe + "." + probe + "_-" + probe
	case inBase64:
		text = probe + "/" + probe + "+a=="
	}
	return s.prefix + text[:max(s.least-len(s.prefix), 60)]
}

func TestEachShapeIsMasked(t *testing.T) {
	for i := range shapes {
		s := &shapes[i]
		key := sample(s)
		for _, shape := range []string{
			`{"kwargs":{"messages":[{"role":"user","content":"use KEY, please"}]}}`,
			`{"metadata":{"note":"KEY"}}`,
			`{"request_response":"{\"a\":\"b\\nKEY\"}"}`,
			`{"tags":["\nKEY\n","\u003cKEY\u003e"]}`,
		} {
			want := strings.ReplaceAll(shape, "KEY", maskedText)
			if s.asked {
				want = strings.ReplaceAll(shape, "KEY", key)
			}
			same(t, s.prefix, stripped(t, strings.ReplaceAll(shape, "KEY", key)), want)
		}

		if s.source == "" || shapeOf([]byte(key)) != s || KeyLength([]byte(key)) != s.least {
			t.Errorf("%s: another row comes before it, or it has no source", s.prefix)
		}
	}
}

// The page of the documentation names every shape and every name that is masked.
func TestThePageOnSecurityNamesWhatIsMasked(t *testing.T) {
	page, err := os.ReadFile("../../dashboard/docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## What is stored\n")
	section, _, _ = strings.Cut(section, "\n## ")

	named, prefixes := map[string]bool{}, map[string]bool{}
	for _, code := range regexp.MustCompile("`[^`]+`").FindAllString(section, -1) {
		code = strings.Trim(code, "`")
		named[string(simpleName(nil, []byte(strings.Trim(code, "*"))))] = true
		prefixes[strings.TrimSuffix(code, "...")] = true
	}

	for _, rule := range nameRules {
		if !named[rule.name] {
			t.Errorf("the page does not name %s", rule.name)
		}
	}
	for _, s := range shapes {
		if !s.asked && !prefixes[s.prefix] {
			t.Errorf("the page does not name %s", s.prefix)
		}
	}
}
