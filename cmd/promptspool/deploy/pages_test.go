package deploy

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// docsFolder holds the pages of the documentation.
const docsFolder = "../../../api/dashboard/docs/"

// yamlBlock is a block of YAML that a page shows, and why it is only shown.
var yamlBlock = regexp.MustCompile("(?s)```yaml shown \\((.*?)\\)\n(.*?)```\n")

// What pages show for a cluster is checked like the manifests; ../docs_blocks_test.go checks all
// other blocks.
func TestThePagesShowGoodManifests(t *testing.T) {
	pages, err := filepath.Glob(docsFolder + "*.md")
	if err != nil {
		t.Fatal(err)
	}

	seen := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
			seen++
			if err := yamlFault(found[1], found[2]); err != nil {
				t.Errorf("%s: %s: %v", page, found[1], err)
			}
		}
	}
	if seen < 5 {
		t.Errorf("only %d blocks were seen", seen)
	}
}

func TestAShownManifestWithAFaultIsFound(t *testing.T) {
	const overlay = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
	for reason, code := range map[string]string{
		"a field":                   "apiVersion: v1\nkind: Service\nspcs: {}",
		"an image":                  overlay + "images: [{name: other}]",
		"another overlay":           overlay + "resources: [cmd/promptspool/deploy/k8s]",
		"values of yours":           "sever: {}",
		"values.yaml of your chart": "promptspool: {image: x}",
	} {
		if err := yamlFault(reason, code+"\n"); err == nil {
			t.Errorf("%s: a fault is accepted", reason)
		}
	}
}

// yamlFault returns what is wrong with YAML for a cluster.
func yamlFault(reason, code string) error {
	// The chart of the page is the one that is rendered, to the letter: what its reader pastes.
	if name, ok := strings.CutSuffix(reason, " of your chart"); ok {
		content, err := os.ReadFile("testdata/helm/app/" + name)
		if err == nil && !strings.Contains(string(content), code) {
			err = fmt.Errorf("testdata/helm/app/%s, which Helm renders, has other lines", name)
		}
		return err
	}

	var top map[string]any
	if err := yaml.Unmarshal([]byte(code), &top); err != nil {
		return err
	}
	m := &manifests{}
	switch {
	case top["kind"] == "Kustomization":
		m.kustomization(code)
	case top["apiVersion"] != nil:
		m = readManifests(map[string][]byte{"block.yaml": []byte(code)})
	case strings.HasPrefix(reason, "values "):
		return chartValuesFault(top)
	}
	if len(m.faults) > 0 {
		return errors.New(strings.Join(m.faults, "\n"))
	}
	return nil
}

// kustomization has the fields that we use of kustomize's own.
type kustomization struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Resources  []string `json:"resources"`
	Images     []struct {
		Name    string `json:"name"`
		NewName string `json:"newName"`
		NewTag  string `json:"newTag"`
		Digest  string `json:"digest"`
	} `json:"images"`
}

// kustomization checks an overlay: our folders, and the images that are named in them.
func (m *manifests) kustomization(code string) {
	var k kustomization
	m.strictly("block.yaml", []byte(code), &k)
	for _, r := range k.Resources {
		if _, ours, found := strings.Cut(r, "cmd/promptspool/deploy/"); found {
			if _, err := os.Stat(ours + "/kustomization.yaml"); err != nil {
				m.fault(r, "%v", err)
			}
		}
	}
	for _, image := range k.Images {
		if image.Name != "promptspool" && image.Name != "app" {
			m.fault(image.Name, "no manifest has this image")
		}
	}
}

// chartValuesFault checks values against the chart's own schema.
func chartValuesFault(values map[string]any) error {
	schema, err := jsonschema.NewCompiler().Compile("helm/values.schema.json")
	if err != nil {
		return err
	}
	asJSON, err := json.Marshal(values)
	if err != nil {
		return err
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(asJSON)))
	if err != nil {
		return err
	}

	return schema.Validate(document)
}
