package deploy

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// chartFolders hold what Helm renders, and what came out.
var chartFolders = []string{"helm", "release/helm.mod", "testdata/helm"}

// chartSums returns the sums of these files as `make chart` writes them.
func chartSums(t *testing.T) string {
	t.Helper()
	var paths []string
	for _, folder := range chartFolders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && d.Name() != "sums" {
				paths = append(paths, filepath.ToSlash(path))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(paths)

	var b strings.Builder
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(content), path)
	}

	return b.String()
}

// renderedChart returns a file that Helm made of the chart.
func renderedChart(t *testing.T, name string) map[string][]byte {
	t.Helper()
	content, err := os.ReadFile("testdata/helm/" + name)
	if err != nil {
		t.Fatal(err)
	}

	return map[string][]byte{name: content}
}

func TestTheRenderedChartIsThatOfTheChart(t *testing.T) {
	sums, err := os.ReadFile("testdata/helm/sums")
	if err != nil {
		t.Fatal(err)
	}
	lines := func(text string) []string { return strings.Split(text, "\n") }
	equal(t, "files of the chart; after a change run `make chart`", lines(chartSums(t)), lines(string(sums)))
}

// Every setting changes something of what Helm renders.
func TestEverySettingOfTheChartArrives(t *testing.T) {
	rendered := string(renderedChart(t, "everything.yaml")["everything.yaml"])
	for _, part := range []string{
		"imagePullSecrets:\n        - name: registry", "storageClassName: fast", "cpu: 1,",
		"--prices=/prices/prices.json", "name: PROMPTSPOOL_SIGNUP", "configMapRef:", "mountPath: /prices",
		"example.com/team: ml", "disk: ssd", "operator: Exists", "ingressClassName: nginx",
		"proxy-body-size: 32m", "secretName: prompts-tls", "--public-url=https://prompts.example.com",
		"--trusted-proxy=10.1.0.0/16", "--trusted-proxy=10.2.0.7",
	} {
		if !strings.Contains(rendered, part) {
			t.Errorf("the rendered chart lacks %q", part)
		}
	}
}

func TestTheChartSaysWhatTheBinaryUnderstands(t *testing.T) {
	for name, kinds := range map[string]string{
		"badger.yaml":     "1 services, 1 policies, 0 budgets, 0 scalers, 0 monitors, 0 rules, [StatefulSet]",
		"postgresql.yaml": "1 services, 1 policies, 1 budgets, 1 scalers, 0 monitors, 0 rules, [Deployment]",
		"everything.yaml": "1 services, 1 policies, 0 budgets, 0 scalers, 0 monitors, 0 rules, [StatefulSet]",
		"app.yaml": "1 services, 1 policies, 0 budgets, 0 scalers, 2 monitors, 1 rules, " +
			"[Deployment Deployment StatefulSet]",
	} {
		m := readManifests(renderedChart(t, name))
		m.check()
		for _, f := range m.faults {
			t.Error(f)
		}

		var workloads []string
		for _, w := range m.workloads {
			workloads = append(workloads, w.kind)
		}
		equal(t, name, fmt.Sprintf("%d services, %d policies, %d budgets, %d scalers, %d monitors, %d rules, %v",
			len(m.services), len(m.policies), len(m.budgets), len(m.scalers), len(m.monitors), len(m.rules), workloads),
			kinds)
	}
}

// The chart has the alerts of the kustomizations, with runbooks at its own server.
func TestTheChartHasTheAlerts(t *testing.T) {
	rule, _ := readRules(t)
	m := readManifests(renderedChart(t, "app.yaml"))
	if len(m.rules) != 1 || m.rules[0].Metadata.Name != "shop-promptspool" {
		t.Fatalf("its rules: %+v", m.rules)
	}
	for _, group := range rule.Spec.Groups {
		for _, r := range group.Rules {
			url := strings.Replace(r.Annotations["runbook_url"], "//promptspool:", "//shop-promptspool:", 1)
			r.Annotations["runbook_url"] = url
		}
	}
	equal(t, "the alerts", m.rules[0].Spec, rule.Spec)
}

func TestAnImageWithoutAVersionIsRefused(t *testing.T) {
	for image, isGood := range map[string]bool{
		"registry.example:5000/promptspool:1.2.3":                            true,
		"registry.example/promptspool@sha256:" + strings.Repeat("a", 64):     true,
		"registry.example/promptspool:1.2@sha256:" + strings.Repeat("a", 64): true,
		"promptspool":                       false,
		"registry.example:5000/promptspool": false,
		"promptspool@sha256:12":             false,
	} {
		if err := chartValuesFault(map[string]any{"image": image}); (err == nil) != isGood {
			t.Errorf("%s: %v", image, err)
		}
	}
}

// The version of the chart is that of the images which it and the kustomizations name.
func TestEveryImageHasTheVersionOfTheChart(t *testing.T) {
	var chart struct {
		Version    string `yaml:"version"`
		AppVersion string `yaml:"appVersion"`
	}
	content, err := os.ReadFile("helm/Chart.yaml")
	if err == nil {
		err = yaml.Unmarshal(content, &chart)
	}
	version := chart.Version
	printed, _ := promptspool("version", "--output=json")
	if err != nil || chart.AppVersion != version || !strings.Contains(string(printed), `"version": "`+version+`"`) {
		t.Errorf("the chart is %+v, and the program %s: %v", chart, printed, err)
	}

	files := deployFiles(t)
	maps.Copy(files, renderedChart(t, "badger.yaml"))
	for _, w := range readManifests(files).workloads {
		for _, c := range w.ours() {
			if _, v := imageOf(c); v != version {
				t.Errorf("%s: the image is %s, want version %s", w.file, c.Image, version)
			}
		}
	}
}

func TestAChartWithAFaultIsFound(t *testing.T) {
	for _, c := range []struct{ file, old, new string }{
		{"badger.yaml", "--listen=", "--lisen="},
		{"badger.yaml", "readOnlyRootFilesystem", "readonlyRootFilesystem"},
		{"badger.yaml", "GOMEMLIMIT, value: 819MiB", "GOMEMLIMIT, value: 1024MiB"},
		{"postgresql.yaml", "minReplicas: 2", "minReplicas: 1"},
		{"everything.yaml", "port: {name: api}", "port: {name: http}"},
		{"app.yaml", "http://shop-promptspool:8788", "http://promptspool:8788"},
		{"app.yaml", "--api-key-file=/secrets/", "--api-key-file=/secret/"},
		{"app.yaml", "            - --upstream-plaintext", "            #"},
		{"app.yaml", "sizeLimit: 1600Mi", "sizeLimit: 1280Mi"},
		{"app.yaml", "  restartPolicy: Always", "#"},
		{"app.yaml", "serviceName: shop-promptspool", "serviceName: promptspool"},
		{"app.yaml", "registry.example/promptspool:1.2.3", "registry.example/promptspool"},
		{"app.yaml", `matchLabels: {promptspool.io/sidecar: "true"}`, `matchLabels: {promptspool.io/sidecar: "no"}`},
	} {
		files := renderedChart(t, c.file)
		harmed := strings.Replace(string(files[c.file]), c.old, c.new, 1)
		if harmed == string(files[c.file]) {
			t.Fatalf("%s holds no %q", c.file, c.old)
		}

		m := readManifests(map[string][]byte{c.file: []byte(harmed)})
		m.check()
		if len(m.faults) == 0 {
			t.Errorf("%s with %q in the place of %q is accepted", c.file, c.new, c.old)
		}
	}
}
