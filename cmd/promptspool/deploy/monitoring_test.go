package deploy

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"promptspool/api/dashboard/docs"
	"promptspool/metrics"
	"promptspool/metrics/partstest"
)

const monitoring = "kubernetes/monitoring"

// prometheusRule is prometheusrule.yaml.
type prometheusRule struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Spec       struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
}

func readRules(t *testing.T) (rule prometheusRule, spec []byte) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(monitoring, "prometheusrule.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	d.KnownFields(true)
	if err := d.Decode(&rule); err != nil {
		t.Fatal(err)
	}
	var raw struct{ Spec yaml.Node }
	if err := yaml.Unmarshal(text, &raw); err != nil {
		t.Fatal(err)
	}
	if spec, err = yaml.Marshal(&raw.Spec); err != nil {
		t.Fatal(err)
	}
	return rule, spec
}

// promtool runs Prometheus' own tool on the alerts and a file of unit tests for them.
func promtool(t *testing.T, rules, tests []byte) (output string, err error) {
	t.Helper()
	partstest.Need(t, "promtool")
	dir := t.TempDir()
	named := strings.Replace(string(tests), "[RULES]", "[rules.yaml]", 1)
	for name, content := range map[string][]byte{"rules.yaml": rules, "test.yaml": []byte(named)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	out, err := exec.Command("promtool", "check", "rules", filepath.Join(dir, "rules.yaml")).CombinedOutput()
	if err != nil {
		return string(out), err
	}
	out, err = exec.Command("promtool", "test", "rules", filepath.Join(dir, "test.yaml")).CombinedOutput()
	return string(out), err
}

func TestEachAlarmFiresOnWhatItIsForAndOnNothingElse(t *testing.T) {
	t.Parallel()
	rule, spec := readRules(t)
	tests, err := os.ReadFile(filepath.Join(monitoring, "alerts_test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if output, err := promtool(t, spec, tests); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}

	for _, r := range rule.Spec.Groups[0].Rules {
		if !strings.Contains(string(tests), "alertname: "+r.Alert+"\n") {
			t.Errorf("%s has no test", r.Alert)
		}
		if r.Annotations["summary"] == "" || r.Annotations["runbook"] == "" || r.Labels["severity"] == "" {
			t.Errorf("%s lacks a summary, a runbook or a severity", r.Alert)
		}
	}

	// A rule that is spoilt fails the tests.
	for _, harm := range [][2]string{
		{"_dead_letters > 0", "_dead_letters > 5"}, {"for: 15m", "for: 50m"}, {"> 900", "> 9"},
	} {
		broken := strings.Replace(string(spec), harm[0], harm[1], 1)
		if broken == string(spec) {
			t.Fatalf("no rule holds %q", harm[0])
		}
		if output, err := promtool(t, []byte(broken), tests); err == nil {
			t.Errorf("with %q in the place of %q the tests pass: %s", harm[1], harm[0], output)
		}
	}
}

var metricName = regexp.MustCompile(`(promptspool|gen_ai_client)_[a-z_]+`)

// exportedNames returns the names of all series of both roles.
func exportedNames(t *testing.T) (names []string) {
	t.Helper()
	for _, role := range []string{"sidecar", "server"} {
		m := metrics.New(role, "test")
		m.HTTPRequests.WithLabelValues("r", "200")
		m.HTTPSeconds.WithLabelValues("r")
		usage, err := metrics.NewUsage(nil, metrics.UsageSeriesDefault)
		if err != nil {
			t.Fatal(err)
		}
		var c metrics.UsedCall
		c.Of[metrics.UsedRequests] = 1
		usage.Count("p", c)
		usage.Correct("p", c, metrics.UsedCall{})
		usage.Name("p", "shop")
		m.Registry.MustRegister(usage)
		families, err := m.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			names = append(names, f.GetName())
			if kind := f.GetType().String(); kind == "HISTOGRAM" || kind == "SUMMARY" {
				names = append(names, f.GetName()+"_bucket", f.GetName()+"_sum", f.GetName()+"_count")
			}
		}
	}
	return names
}

func TestDashboardAndAlarmsAskForMetricsThatThereAre(t *testing.T) {
	there := exportedNames(t)
	ask := func(where, query string) {
		found := metricName.FindAllString(query, -1)
		if len(found) == 0 {
			t.Errorf("%s reads none of our metrics: %s", where, query)
		}

		for _, name := range found {
			if !slices.Contains(there, name) {
				t.Errorf("%s reads %s, which is not exported", where, name)
			}
		}
	}

	rule, _ := readRules(t)
	for _, r := range rule.Spec.Groups[0].Rules {
		ask(r.Alert, r.Expr)
	}
	text, err := os.ReadFile("grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}

	if len(board.Panels) < 10 {
		t.Errorf("the dashboard has %d panels", len(board.Panels))
	}

	for _, p := range board.Panels {
		for _, q := range p.Targets {
			ask("the panel "+p.Title, q.Expr)
		}
	}
}

// Each kustomization names existing files, and every manifest is in one.
func TestEveryManifestStandsInAKustomization(t *testing.T) {
	folders, err := filepath.Glob("kubernetes/*")
	if err != nil || len(folders) < 4 {
		t.Fatal(folders, err)
	}

	for _, folder := range folders {
		text, err := os.ReadFile(filepath.Join(folder, "kustomization.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var k kustomization
		m := &manifests{}
		if m.strictly(folder, text, &k); len(m.faults) > 0 || k.Kind != "Kustomization" {
			t.Errorf("%s: %+v %v", folder, k, m.faults)
		}
		for _, r := range k.Resources {
			if _, err := os.Stat(filepath.Join(folder, r)); err != nil {
				t.Errorf("%s: %v", folder, err)
			}
		}

		files, _ := filepath.Glob(filepath.Join(folder, "*.yaml"))
		for _, f := range files {
			name := filepath.Base(f)
			isTest := name == "alerts_test.yaml"
			if name != "kustomization.yaml" && !isTest && !slices.Contains(k.Resources, name) {
				t.Errorf("%s is in no kustomization", f)
			}
		}
	}
}

func TestEachAlertHasItsEntryInTheRunbook(t *testing.T) {
	rule, _ := readRules(t)
	page := docs.Find("alerts").HTML("", "")
	for _, r := range rule.Spec.Groups[0].Rules {
		anchor := strings.ToLower(r.Alert)
		if url := r.Annotations["runbook_url"]; url != "http://promptspool:8788/docs/alerts#"+anchor {
			t.Errorf("the runbook of %s is at %q", r.Alert, url)
		}
		_, entry, ok := strings.Cut(page, `<h2 id="`+anchor+`">`)
		entry, _, _ = strings.Cut(entry, "<h2")
		if !ok || len(entry) < 200 {
			t.Errorf("%s has no entry: %s", r.Alert, entry)
		}
	}
}
