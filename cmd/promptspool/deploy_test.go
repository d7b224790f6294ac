package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
	"go.yaml.in/yaml/v3"
)

// container is what a manifest says of a process of ours; what else it says of it is Kubernetes' to check.
type container struct {
	Args    []string `yaml:"args"`
	Command []string `yaml:"command"` // Compose's
	Ports   []any    `yaml:"ports"`
}

// inManifest finds all that runs promptspool in a YAML tree, and all paths of probes.
func inManifest(t *testing.T, node *yaml.Node, found *[]container, paths *[]string) {
	t.Helper()
	if node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(node.Content); i += 2 {
			if key, value := node.Content[i].Value, node.Content[i+1]; key == "httpGet" {
				var probe struct{ Path, Port string }
				if err := value.Decode(&probe); err != nil || probe.Port != "ops" {
					t.Errorf("line %d: a probe that does not use the operations listener: %+v, %v", value.Line, probe, err)
				}
				*paths = append(*paths, probe.Path)
			} else if (key == "args" || key == "command") && value.Kind == yaml.SequenceNode {
				var c container
				if err := node.Decode(&c); err != nil {
					t.Errorf("line %d: %v", node.Line, err)
				}
				*found = append(*found, c)
			}
		}
	}
	for _, child := range node.Content {
		inManifest(t, child, found, paths)
	}
}

func TestTheManifestsSayWhatTheBinaryUnderstands(t *testing.T) {
	withoutVariables(t)
	files, err := filepath.Glob("deploy/kubernetes/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, path := range append(files, "deploy/compose.yaml") {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		decoder := yaml.NewDecoder(f)
		var containers []container
		var paths []string
		for {
			var document yaml.Node
			if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			inManifest(t, &document, &containers, &paths)
		}
		_ = f.Close()
		for _, p := range paths {
			if !slices.Contains([]string{"/livez", "/readyz", "/startupz"}, p) {
				t.Errorf("%s: there is no probe %s", path, p)
			}
		}
		for _, c := range containers {
			seen++
			args := slices.Concat([]string{"promptspool"}, c.Args, c.Command)
			err := evaluate(args, nil, func(c *cli.Context) error {
				v := &values{c: c}
				v.address("listen")
				v.address("ops-listen")
				if c.Command.Name == "sidecar" {
					v.upstreamURL()
					sidecarConfigOf(v)
				}
				return v.err()
			})
			if err != nil {
				t.Errorf("%s: %s: %v", path, strings.Join(args, " "), err)
			}
		}
	}
	if seen != 5 {
		t.Errorf("%d processes were seen in the manifests; there should be 5", seen)
	}
}

func TestAManifestWithAFaultIsFound(t *testing.T) {
	withoutVariables(t)
	for _, args := range [][]string{{"promptspool", "server", "--lisen=0.0.0.0:1"}, {"promptspool", "sidecar", "--upstream=http://server:1"}} {
		err := evaluate(args, nil, func(c *cli.Context) error {
			v := &values{c: c}
			v.upstreamURL()
			return v.err()
		})
		if err == nil {
			t.Errorf("%v is understood", args)
		}
	}
}
