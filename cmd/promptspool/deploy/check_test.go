package deploy

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dustin/go-humanize"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/machine"
)

// What the Dockerfile and the pages promise of a container.
const (
	containerUser  = 65532
	containerBytes = 96 << 20 // of memory, enough for a sidecar
)

// port returns a listener's port, and whether other machines reach it.
func port(address string) (number int32, public bool) {
	host, text, _ := net.SplitHostPort(address)
	n, _ := strconv.ParseInt(text, 10, 32)
	return int32(n), !config.IsLoopback(host)
}

// check checks everything that was decoded.
func (m *manifests) check() {
	for _, w := range m.workloads {
		if len(w.ours()) != 1 {
			m.fault(w.file, "%d containers of a pod run promptspool", len(w.ours()))
		}
		for _, c := range w.ours() {
			m.container(w, c)
		}
		if w.service != "" && len(m.services[w.service]) == 0 {
			m.fault(w.file, "its service %s does not exist", w.service)
		}
		if w.pod.TerminationGracePeriodSeconds == nil || *w.pod.TerminationGracePeriodSeconds < 30 {
			m.fault(w.file, "a stop may take 25 s; the pod is killed earlier")
		}
		for _, e := range appVariables(w) {
			if u, err := url.Parse(e.Value); err != nil || u.Host != config.SidecarListen {
				m.fault(w.file, "the app calls %s; the sidecar listens on %s", e.Value, config.SidecarListen)
			}
		}
	}

	m.network()
	m.composition()

	folders := map[string]string{}
	for file, args := range m.units {
		u := m.understand(file, args, nil)
		if "systemd/promptspool-"+u.role+".service" != file {
			m.fault(file, "it starts a %q", u.role)
		}
		if other, taken := folders[u.data]; taken {
			m.fault(file, "%s has the same folder, %s", other, u.data)
		}
		folders[u.data] = file

		if !slices.Contains(args, "--config") {
			m.fault(file, "no configuration file")
		}
		// It has time to stop, is waited for, and is started until its fault is mended.
		for setting := range strings.FieldsSeq("TimeoutStopSec=30 Type=notify Restart=always StartLimitIntervalSec=0") {
			if !strings.Contains(string(m.files[file]), "\n"+setting+"\n") {
				m.fault(file, "it is not %s", setting)
			}
		}
	}
}

// appVariables returns the variables of the other containers.
func appVariables(w workload) (all []corev1.EnvVar) {
	for _, c := range w.pod.Containers {
		if !isOurs(c) {
			all = append(all, c.Env...)
		}
	}
	return all
}

// container compares one of our containers with the binary's reading of it.
func (m *manifests) container(w workload, c corev1.Container) {
	where := w.file + ", " + c.Name
	var variables []string
	for _, e := range c.Env {
		variables = append(variables, e.Name)
	}
	u := m.understand(where, c.Args, variables)
	if _, version := imageOf(c); version == "" || version == "latest" {
		m.fault(where, "the image %s changes under its name: it needs a tag or a digest", c.Image)
	}

	for _, p := range c.Ports {
		address := map[string]string{"api": u.settings["listen"], "ops": u.settings["ops-listen"]}[p.Name]
		if number, public := port(address); number != p.ContainerPort || !public {
			m.fault(where, "the port %s is %d, and the process listens on %q", p.Name, p.ContainerPort, address)
		}
	}
	if !slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == "ops" }) {
		m.fault(where, "the probes' port has no name")
	}
	probes := map[string]*corev1.Probe{
		"/startupz": c.StartupProbe, "/readyz": c.ReadinessProbe, "/livez": c.LivenessProbe,
	}
	isBeside := u.role == "sidecar" && c.RestartPolicy == nil && c.ReadinessProbe == nil
	if isBeside {
		delete(probes, "/readyz") // the app does not wait for it
	}
	for name, p := range probes {
		if p == nil || p.HTTPGet == nil || p.HTTPGet.Path != name || p.HTTPGet.Port != intstr.FromString("ops") {
			m.fault(where, "a probe is not %s of the port ops: %+v", name, p)
		}
	}

	m.rights(where, w, c)
	m.memory(where, c)
	m.volumes(where, w, c, u)

	isSidecar := slices.ContainsFunc(w.pod.InitContainers, func(i corev1.Container) bool {
		return i.Name == c.Name && i.RestartPolicy != nil &&
			*i.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
	if (isSidecar || isBeside) != (u.role == "sidecar") {
		m.fault(where, "a sidecar is an init container with restartPolicy Always, or has no readiness; a server is not")
	}

	if u.role == "server" && !u.shared && (w.kind != "StatefulSet" || w.replicas != 1) {
		m.fault(where, "%d servers of a %s; its database is one process's", w.replicas, w.kind)
	}
	if u.role == "server" && u.shared {
		m.scaled(where, w)
	}
	if u.role == "sidecar" {
		m.toService(where, u.settings["upstream"])
	}
}

// scaled checks that there are several servers of a shared database, and that this stays
// so when nodes go.
func (m *manifests) scaled(where string, w workload) {
	if w.kind != "Deployment" || len(w.claims) > 0 {
		m.fault(where, "a %s, for a server that keeps nothing", w.kind)
	}
	if !slices.ContainsFunc(m.scalers, func(a autoscalingv2.HorizontalPodAutoscaler) bool {
		to := a.Spec.ScaleTargetRef
		bounds := a.Spec.MinReplicas != nil && *a.Spec.MinReplicas >= 2 && a.Spec.MaxReplicas > *a.Spec.MinReplicas
		return to.Kind == w.kind && to.Name == w.name && to.APIVersion == "apps/v1" && bounds
	}) {
		m.fault(where, "no autoscaler keeps at least two servers")
	}
	if !slices.ContainsFunc(m.budgets, func(b policyv1.PodDisruptionBudget) bool {
		one := b.Spec.MaxUnavailable != nil && b.Spec.MaxUnavailable.IntValue() == 1
		return b.Spec.Selector != nil && chosen(b.Spec.Selector.MatchLabels, w.labels) && one
	}) {
		m.fault(where, "no budget lets one server go at a time")
	}
}

// rights checks that a container has none.
func (m *manifests) rights(where string, w workload, c corev1.Container) {
	s, p := c.SecurityContext, w.pod.SecurityContext
	if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem ||
		s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
		s.Capabilities == nil || !slices.Contains(s.Capabilities.Drop, "ALL") || len(s.Capabilities.Add) > 0 {
		m.fault(where, "the container may write its root, or has rights: %+v", s)
	}
	if p == nil || p.RunAsNonRoot == nil || !*p.RunAsNonRoot || p.RunAsUser == nil || *p.RunAsUser != containerUser ||
		p.FSGroup == nil || *p.FSGroup != containerUser || p.SeccompProfile == nil {
		m.fault(where, "the container does not run as the image's user: %+v", p)
	}
	if t := w.pod.AutomountServiceAccountToken; t == nil || *t {
		m.fault(where, "the container gets a token for the cluster, which it does not need")
	}
}

// memory checks that the collector's limit is below the container's.
func (m *manifests) memory(where string, c corev1.Container) {
	limit := c.Resources.Limits.Memory().Value()
	for _, e := range c.Env {
		n, err := humanize.ParseBytes(e.Value)
		if e.Name == "GOMEMLIMIT" && (err != nil || int64(n) > limit-machine.OutsideHeap) {
			m.fault(where, "GOMEMLIMIT is %s, but the container may use only %d bytes", e.Value, limit)
		}
	}
	if limit < containerBytes {
		m.fault(where, "%d bytes of memory are not enough", limit)
	}
}

// volumes checks that the data folder is our own in a volume large enough, and that
// secrets are where they are read.
func (m *manifests) volumes(where string, w workload, c corev1.Container, u understood) {
	mounted := map[string]string{}
	for _, v := range c.VolumeMounts {
		mounted[v.MountPath] = v.Name
		if v.ReadOnly && v.MountPath == path.Dir(u.data) {
			m.fault(where, "the volume of its data cannot be written")
		}
	}
	space := resource.Quantity{}
	secrets := map[string]bool{}

	for _, v := range w.pod.Volumes {
		if v.Name == mounted[path.Dir(u.data)] && v.EmptyDir != nil && v.EmptyDir.SizeLimit != nil {
			space = *v.EmptyDir.SizeLimit
		}
		secrets[v.Name] = v.Secret != nil
	}
	for _, v := range w.claims {
		if v.Name == mounted[path.Dir(u.data)] {
			space = v.Spec.Resources.Requests[corev1.ResourceStorage]
		}
	}

	// Every container of the pod can write the mount itself; a folder in it is 0700.
	if space.IsZero() || space.Value() < u.diskMax*5/4 {
		m.fault(where, "%s is not a folder in a volume that is a quarter larger than the %d bytes of --disk-max",
			u.data, u.diskMax)
	}

	for _, file := range u.files {
		if !secrets[mounted[path.Dir(file)]] {
			m.fault(where, "nothing brings %s", file)
		}
	}
}

// toService checks that a URL names a service and one of its ports for the API.
func (m *manifests) toService(where, address string) {
	u, err := url.Parse(address)
	if err != nil {
		m.fault(where, "%v", err)
		return
	}
	for _, s := range m.services[u.Hostname()] {
		isAPI := func(p corev1.ServicePort) bool { return u.Port() == fmt.Sprint(p.Port) && p.Name == "api" }
		if !slices.ContainsFunc(s.Spec.Ports, isAPI) {
			m.fault(where, "%s leads to no API of a service", address)
		}
	}
	if len(m.services[u.Hostname()]) == 0 {
		m.fault(where, "%s leads to no service", address)
	}
}

// network checks that the pods have the ports that every service, policy and monitor names.
func (m *manifests) network() {
	named := func(where string, selector map[string]string, port string) {
		for _, w := range m.workloads {
			for _, c := range w.ours() {
				isPort := func(p corev1.ContainerPort) bool { return p.Name == port }
				if chosen(selector, w.labels) && slices.ContainsFunc(c.Ports, isPort) {
					return
				}
			}
		}
		m.fault(where, "no pod with %v has a port %q", selector, port)
	}

	for name, alternatives := range m.services {
		for _, s := range alternatives {
			for _, p := range s.Spec.Ports {
				named("the service "+name, s.Spec.Selector, p.TargetPort.StrVal)
			}
		}
	}

	for _, p := range m.policies {
		for _, rule := range p.Spec.Ingress {
			for _, port := range rule.Ports {
				named("the policy "+p.Name, p.Spec.PodSelector.MatchLabels, port.Port.String())
			}
		}
	}

	for _, i := range m.ingresses {
		for _, rule := range i.Spec.Rules {
			for _, p := range rule.HTTP.Paths {
				to := p.Backend.Service
				isPort := func(port corev1.ServicePort) bool { return port.Name == to.Port.Name }
				isService := func(s corev1.Service) bool { return slices.ContainsFunc(s.Spec.Ports, isPort) }
				if !slices.ContainsFunc(m.services[to.Name], isService) {
					m.fault("the ingress "+i.Name, "%s has no port %s", to.Name, to.Port.Name)
				}
			}
		}
	}

	for _, n := range m.monitors {
		for _, e := range slices.Concat(n.Spec.Endpoints, n.Spec.PodMetricsEndpoints) {
			if e.Path != "/metrics" {
				m.fault(n.Metadata.Name, "metrics are not at %q", e.Path)
			}
			named("the monitor "+n.Metadata.Name, n.Spec.Selector.MatchLabels, e.Port)
		}
	}
}

// composePort is a port that Compose publishes on the machine.
var composePort = regexp.MustCompile(`^127\.0\.0\.1:\d+:(\d+)$`)

// composition checks the Compose file.
func (m *manifests) composition() {
	for name, s := range m.compose.Services {
		where := "compose.yaml, " + name
		u := m.understand(where, s.Command, slices.Collect(maps.Keys(s.Environment)))
		api, apiPublic := port(u.settings["listen"])
		ops, opsPublic := port(u.settings["ops-listen"])
		for _, p := range s.Ports {
			inside := composePort.FindStringSubmatch(p)
			known := inside != nil && (inside[1] == fmt.Sprint(api) || inside[1] == fmt.Sprint(ops))
			if !known || !apiPublic || !opsPublic {
				m.fault(where, "the port %s is not of %s or %s, or other machines reach it",
					p, u.settings["listen"], u.settings["ops-listen"])
			}
		}

		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) {
			m.fault(where, "the container may write its root, or has rights")
		}

		if bytes, err := humanize.ParseBytes(s.Memory + "ib"); err != nil || bytes < containerBytes {
			m.fault(where, "%s of memory are not enough: %v", s.Memory, err)
		}
		if !slices.Equal(s.Health.Test, []string{"CMD", "/promptspool", "status", "--data=" + u.data}) {
			m.fault(where, "its health is that of something else: %q", s.Health.Test)
		}
		// Apps of the same network call it by its name.
		if u.role == "sidecar" && !slices.Contains(s.Command, "--allow-host="+name) {
			m.fault(where, "it rejects calls to http://%s", name)
		}

		for _, v := range s.Volumes {
			volume, at, _ := strings.Cut(v, ":")
			if _, made := m.compose.Volumes[volume]; !made || at != path.Dir(u.data) {
				m.fault(where, "the volume %s does not hold %s", v, u.data)
			}
		}

		if to, err := url.Parse(u.settings["upstream"]); u.role == "sidecar" {
			server, there := m.compose.Services[to.Hostname()]
			isPort := func(p string) bool { return strings.HasSuffix(p, ":"+to.Port()) }
			if err != nil || !there || !slices.ContainsFunc(server.Ports, isPort) {
				m.fault(where, "%s leads to no service", u.settings["upstream"])
			}
		}
	}
}

func TestTheManifestsSayWhatTheBinaryUnderstands(t *testing.T) {
	m := readManifests(deployFiles(t))
	m.check()
	for _, f := range m.faults {
		t.Error(f)
	}
	kubernetes := len(m.workloads) == 4 && len(m.services["promptspool"]) == 2 && len(m.policies) == 2 &&
		len(m.budgets) == 1 && len(m.scalers) == 1 && len(m.monitors) == 2
	if !kubernetes || len(m.compose.Services) != 2 || len(m.units) != 2 {
		t.Errorf("not everything was seen: %d workloads, %d services, %d policies, %d monitors, "+
			"%d of Compose, %d units",
			len(m.workloads), len(m.services), len(m.policies), len(m.monitors), len(m.compose.Services), len(m.units))
	}
}

func TestAManifestWithAFaultIsFound(t *testing.T) {
	const (
		server   = "kubernetes/base/server.yaml"
		shared   = "kubernetes/postgres/server.yaml"
		sidecar  = "kubernetes/emptydir/sidecar.yaml"
		pvc      = "kubernetes/pvc/sidecar.yaml"
		monitors = "kubernetes/monitoring/servicemonitor.yaml"

		budget = "maxUnavailable: 1\n  selector:\n    matchLabels: {app.kubernetes.io/name: "
	)
	for _, c := range []struct{ file, old, new string }{
		{"compose.yaml", ", --allow-host=sidecar", ""},
		{"compose.yaml", "status, --data=/data/server", "status, --data=/data"},
		{"compose.yaml", "mem_limit: 96m", "mem_limit: 64m"},
		{server, "--listen=", "--lisen="},
		{server, "--listen=0.0.0.0:8788", "--listen=0.0.0.0:8789"},
		{server, "--ops-listen=0.0.0.0:9788", "--ops-listen=127.0.0.1:9788"},
		{server, "            - --listen-public\n", ""},
		{server, "/data/server", "/data"},
		{server, "/secrets/bootstrap-key", "/secret/bootstrap-key"},
		{server, "targetPort: ops", "targetPort: operations"},
		{server, "port: 8788,", "port: 8790,"},
		{server, "replicas: 1", "replicas: 2"},
		{server, "GOMEMLIMIT, value: 800MiB", "GOMEMLIMIT, value: 2GiB"},
		{server, "name: GOMEMLIMIT, value: 800MiB", "name: PROMPTSPOOL_BOOTSTRAP, value: k"},
		{server, "readOnlyRootFilesystem", "readonlyRootFilesystem"},
		{server, "path: /readyz", "path: /ready"},
		{server, "terminationGracePeriodSeconds: 30", "terminationGracePeriodSeconds: 10"},
		{server, "runAsUser: 65532", "runAsUser: 1000"},
		{server, "      terminationGracePeriodSeconds: 30",
			"      terminationGracePeriodSeconds: 30\n      terminationGracePeriodSeconds: 30"},
		{server, "kind: StatefulSet", "kind: ReplicaSet"},
		{shared, "--archive-file=", "--archives-file="},
		{shared, "            - --archive-file=/secrets/archive\n", ""},
		{shared, "/secrets/archive", "/secret/archive"},
		{shared, "minReplicas: 2", "minReplicas: 1"},
		{shared, "kind: Deployment, name: promptspool", "kind: Deployment, name: server"},
		{shared, "maxUnavailable: 1\n", "minAvailable: 2\n"},
		{shared, budget + "promptspool-server}", budget + "server}"},
		{shared, "averageUtilization", "averageUtilisation"},
		{shared, "emptyDir: {sizeLimit: 16Mi}", "emptyDir: {}"},
		{sidecar, "restartPolicy: Always", "restartPolicy: OnFailure"},
		{sidecar, "--upstream-plaintext", "--upstream-plain"},
		{sidecar, "            - --upstream-plaintext", "            #"},
		{sidecar, "http://promptspool:8788", "http://promptspool:9788"},
		{sidecar, "sizeLimit: 1600Mi", "sizeLimit: 1280Mi"},
		{sidecar, "sizeLimit", "sizelimit"},
		{sidecar, "limits: {memory: 96Mi}", "limits: {memory: 64Mi}"},
		{sidecar, "127.0.0.1:8787", "127.0.0.1:8788"},
		{sidecar, "drop: [ALL]", "drop: [NET_RAW]"},
		{sidecar, "--spool-bytes-max=1GiB", "--spool-bytes-max=1GB2"},
		{pvc, "storage: 1600Mi", "storage: 1Gi"},
		{pvc, "serviceName: app", "serviceName: apps"},
		{pvc, "image: promptspool:0.1.0", "image: promptspool"},
		{pvc, "image: promptspool:0.1.0", "image: promptspool:latest"},
		{pvc, "name: spool, mountPath: /data", "name: other, mountPath: /data"},
		{monitors, "port: ops", "port: metrics"},
		{monitors, "path: /metrics", "path: /metric"},
		{"kubernetes/base/networkpolicy.yaml", "port: ops", "port: op"},
		{"compose.yaml", "--upstream=http://server:8788", "--upstream=http://serve:8788"},
		{"compose.yaml", "127.0.0.1:9787:9787", "9787:9787"},
		{"compose.yaml", "PROMPTSPOOL_BOOTSTRAP_KEY: ", "PROMPTSPOOL_BOOTSTRAPKEY: "},
		{"systemd/promptspool-sidecar.service", "--data", "--folder"},
		{"systemd/promptspool-sidecar.service", "ExecStart=promptspool sidecar", "ExecStart=promptspool server"},
		{"systemd/promptspool-server.service", "=promptspool-server\nStateDirectoryM", "=promptspool\nStateDirectoryM"},
		{"systemd/promptspool-server.service", "TimeoutStopSec=30", "TimeoutStopSec=3"},
		{"systemd/promptspool-server.service", "StartLimitIntervalSec=0", "StartLimitIntervalSec=10"},
		{"systemd/promptspool-sidecar.service", "Type=notify", "Type=exec"},
		{"systemd/promptspool-sidecar.service", "Restart=always", "Restart=on-failure"},
	} {
		files := deployFiles(t)
		text := string(files[c.file])
		harmed := strings.Replace(text, c.old, c.new, 1)
		if harmed == text {
			t.Fatalf("%s holds no %q", c.file, c.old)
		}
		files[c.file] = []byte(harmed)

		m := readManifests(files)
		m.check()
		if len(m.faults) == 0 {
			t.Errorf("%s with %q in the place of %q is accepted", filepath.Base(c.file), c.new, c.old)
		}
	}
}
