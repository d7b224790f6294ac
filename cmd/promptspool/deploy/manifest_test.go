package deploy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"
)

// manifests are the files of deploy by their names, decoded as an API server would with
// strict field validation, and the faults that were found in them.
type manifests struct {
	files     map[string][]byte
	services  map[string][]corev1.Service // by name: alternatives have the same name
	workloads []workload
	policies  []networkingv1.NetworkPolicy
	monitors  []monitor
	rules     []prometheusRule
	budgets   []policyv1.PodDisruptionBudget
	scalers   []autoscalingv2.HorizontalPodAutoscaler
	ingresses []networkingv1.Ingress
	compose   composeFile
	units     map[string][]string // the command lines of systemd's units
	faults    []string
}

// workload is a Deployment or a StatefulSet.
type workload struct {
	file, kind string
	name       string
	service    string // of a StatefulSet
	replicas   int32
	labels     map[string]string
	pod        corev1.PodSpec
	claims     []corev1.PersistentVolumeClaim
}

// monitor has the fields that we use of a ServiceMonitor or a PodMonitor. No small module
// has their types.
type monitor struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		Selector struct {
			MatchLabels map[string]string `json:"matchLabels"`
		} `json:"selector"`
		Endpoints           []endpoint `json:"endpoints"`
		PodMetricsEndpoints []endpoint `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

type endpoint struct {
	Port     string `json:"port"`
	Path     string `json:"path"`
	Interval string `json:"interval"`
}

// composeFile has the fields that we use of a Compose file.
type composeFile struct {
	Services map[string]struct {
		Build       string            `json:"build"`
		Command     []string          `json:"command"`
		Environment map[string]string `json:"environment"`
		Ports       []string          `json:"ports"`
		Volumes     []string          `json:"volumes"`
		ReadOnly    bool              `json:"read_only"`
		CapDrop     []string          `json:"cap_drop"`
		Restart     string            `json:"restart"`
		Memory      string            `json:"mem_limit"`
		Health      struct {
			Test        []string `json:"test"`
			Interval    string   `json:"interval"`
			StartPeriod string   `json:"start_period"`
		} `json:"healthcheck"`
	} `json:"services"`
	Volumes map[string]any `json:"volumes"`
}

// deployFiles reads the files of deploy that describe how to run promptspool.
func deployFiles(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, pattern := range []string{"kubernetes/*/*.yaml", "*.yaml", "systemd/*.service"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatal(pattern, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files[filepath.ToSlash(name)] = text
		}
	}
	return files
}

// readManifests decodes all of them.
func readManifests(files map[string][]byte) *manifests {
	m := &manifests{files: files, services: map[string][]corev1.Service{}, units: map[string][]string{}}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		switch base := path.Base(file); {
		case base == "kustomization.yaml", base == "alerts_test.yaml", base == "prometheusrule.yaml":
			// They have tests of their own.
		case file == "compose.yaml":
			m.strictly(file, files[file], &m.compose)
		case path.Ext(file) == ".service":
			m.unit(file, string(files[file]))
		default:
			m.documents(file, files[file])
		}
	}
	return m
}

func (m *manifests) fault(where, format string, args ...any) {
	m.faults = append(m.faults, where+": "+fmt.Sprintf(format, args...))
}

// strictly decodes one document: a field that its type does not have, in this very
// spelling, is a fault, and so is a field that is there twice.
func (m *manifests) strictly(file string, text []byte, into any) {
	asJSON, err := sigsyaml.YAMLToJSONStrict(text)
	if err != nil {
		m.fault(file, "%v", err)
		return
	}
	strict, err := json.UnmarshalStrict(asJSON, into)
	for _, err := range append(strict, err) {
		if err != nil {
			m.fault(file, "%v", err)
		}
	}
}

// strictly decodes one document of a type.
func strictly[T any](m *manifests, file string, text []byte) (object T) {
	m.strictly(file, text, &object)
	return object
}

// documents decodes a file of Kubernetes objects.
func (m *manifests) documents(file string, content []byte) {
	for decoder := yaml.NewDecoder(bytes.NewReader(content)); ; {
		var document yaml.Node
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			m.fault(file, "%v", err)
			return
		}

		text, err := yaml.Marshal(&document)
		var head struct {
			APIVersion string `yaml:"apiVersion"`
			Kind       string `yaml:"kind"`
		}
		if err := errors.Join(err, yaml.Unmarshal(text, &head)); err != nil {
			m.fault(file, "%v", err)
			return
		}

		switch head.APIVersion + " " + head.Kind {
		case "v1 Service":
			s := strictly[corev1.Service](m, file, text)
			m.services[s.Name] = append(m.services[s.Name], s)
		case "apps/v1 Deployment":
			d := strictly[appsv1.Deployment](m, file, text)
			m.workload(file, workload{
				file:     file,
				kind:     head.Kind,
				name:     d.Name,
				replicas: replicas(d.Spec.Replicas),
				labels:   d.Spec.Template.Labels,
				pod:      d.Spec.Template.Spec,
			}, d.Spec.Selector)
		case "apps/v1 StatefulSet":
			s := strictly[appsv1.StatefulSet](m, file, text)
			m.workload(file, workload{
				file:     file,
				kind:     head.Kind,
				name:     s.Name,
				service:  s.Spec.ServiceName,
				replicas: replicas(s.Spec.Replicas),
				labels:   s.Spec.Template.Labels,
				pod:      s.Spec.Template.Spec,
				claims:   s.Spec.VolumeClaimTemplates,
			}, s.Spec.Selector)
		case "networking.k8s.io/v1 NetworkPolicy":
			m.policies = append(m.policies, strictly[networkingv1.NetworkPolicy](m, file, text))
		case "monitoring.coreos.com/v1 ServiceMonitor", "monitoring.coreos.com/v1 PodMonitor":
			m.monitors = append(m.monitors, strictly[monitor](m, file, text))
		case "monitoring.coreos.com/v1 PrometheusRule":
			var rule prometheusRule
			if err := yaml.Unmarshal(text, &rule); err != nil {
				m.fault(file, "%v", err)
			}
			m.rules = append(m.rules, rule)
		case "policy/v1 PodDisruptionBudget":
			m.budgets = append(m.budgets, strictly[policyv1.PodDisruptionBudget](m, file, text))
		case "autoscaling/v2 HorizontalPodAutoscaler":
			m.scalers = append(m.scalers, strictly[autoscalingv2.HorizontalPodAutoscaler](m, file, text))
		case "networking.k8s.io/v1 Ingress":
			m.ingresses = append(m.ingresses, strictly[networkingv1.Ingress](m, file, text))
		default:
			m.fault(file, "no test checks a %s of %s", head.Kind, head.APIVersion)
		}
	}
}

func replicas(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

func (m *manifests) workload(file string, w workload, selects *metav1.LabelSelector) {
	if selects == nil || len(selects.MatchLabels) == 0 || !chosen(selects.MatchLabels, w.labels) {
		m.fault(file, "its selector %v does not choose its own pods, %v", selects, w.labels)
	}
	m.workloads = append(m.workloads, w)
}

// chosen reports whether a selector selects these labels.
func chosen(selector, labels map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return true
}

// unit reads the command line of a systemd unit.
func (m *manifests) unit(file, text string) {
	_, folder, ok := strings.Cut(text, "\nStateDirectory=")
	folder, _, _ = strings.Cut(folder, "\n")
	_, line, starts := strings.Cut(text, "\nExecStart=promptspool ")
	line, _, _ = strings.Cut(line, "\n")
	if !ok || !starts {
		m.fault(file, "it does not start promptspool on a folder of its own")
		return
	}

	// The package puts the file of settings there.
	line = strings.ReplaceAll(line, "/etc/promptspool/config.yaml", "systemd/config.yaml")
	line = strings.ReplaceAll(line, "${STATE_DIRECTORY}", "/var/lib/"+folder)
	m.units[file] = strings.Fields(line)
}

// ours returns a pod's containers that run promptspool.
func (w workload) ours() []corev1.Container {
	all := slices.Concat(w.pod.InitContainers, w.pod.Containers)
	return slices.DeleteFunc(all, func(c corev1.Container) bool { return !isOurs(c) })
}

// imageOf returns the name of a container's image, and its tag or digest.
func imageOf(c corev1.Container) (name, version string) {
	at := strings.LastIndexAny(c.Image, "/")
	name, version, _ = strings.Cut(c.Image[at+1:], "@")
	if version == "" {
		name, version, _ = strings.Cut(name, ":")
	}

	return c.Image[:at+1] + name, version
}

// isOurs reports whether a container has our image, of any registry and version.
func isOurs(c corev1.Container) bool {
	name, _ := imageOf(c)
	return path.Base(name) == "promptspool"
}
