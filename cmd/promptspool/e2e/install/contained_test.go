//go:build linux

package install

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"

	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/metrics/partstest"
)

// A container is a process with a root that it cannot write, a user without rights,
// volumes, and a memory cgroup. These scenes make one without a container runtime: so the
// Dockerfile's binary runs as the manifests say, on any Linux and as root.

// containerUser runs in the image.
const containerUser = 65532

// containerVariable gives the helper the container's root and its volume, separated by a
// colon.
const containerVariable = "PROMPTSPOOL_TEST_CONTAINER"

// container is the part of a manifest's container that these scenes use.
type container struct {
	Name string
	Args []string
	Env  []struct{ Name, Value string }

	StartupProbe   probe `yaml:"startupProbe"`
	ReadinessProbe probe `yaml:"readinessProbe"`
	LivenessProbe  probe `yaml:"livenessProbe"`
}

type probe struct {
	HTTPGet struct{ Path string } `yaml:"httpGet"`
}

// containerIn reads a container from a file of deploy/kubernetes.
func containerIn(t *testing.T, file, name string) container {
	t.Helper()
	f, err := os.Open("../../deploy/kubernetes/" + file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	for decoder := yaml.NewDecoder(f); ; {
		var workload struct {
			Spec struct {
				Template struct {
					Spec struct {
						InitContainers []container `yaml:"initContainers"`
						Containers     []container
					}
				}
			}
		}
		if err := decoder.Decode(&workload); err != nil {
			t.Fatalf("there is no container %s in %s: %v", name, file, err)
		}
		pod := workload.Spec.Template.Spec
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			if c.Name == name {
				return c
			}
		}
	}
}

// contained is a running container of a manifest.
type contained struct {
	t      *testing.T
	spec   container
	volume string // of /data
	script string // runs it
}

// newContained makes a container's root and its volume, with the secrets that it reads.
func newContained(t *testing.T, spec container, secrets map[string]string) *contained {
	t.Helper()
	partstest.Need(t, "root")
	shipped, err := harness.PlainBinary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := &contained{t: t, spec: spec, volume: filepath.Join(dir, "volume"), script: filepath.Join(dir, "run")}
	root := filepath.Join(dir, "root")
	for _, path := range []string{
		root, root + "/data", root + "/secrets", root + "/proc", root + "/sys/fs/cgroup", c.volume,
	} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}

	for name, value := range secrets {
		if err := os.WriteFile(filepath.Join(root, "secrets", name), []byte(value), 0o444); err != nil {
			t.Fatal(err)
		}
	}

	harness.Tool(t, "cp", shipped, root+"/promptspool")

	// As the kubelet hands over a volume with fsGroup: it belongs to root, and the group
	// may write.
	if err := os.Chown(c.volume, 0, containerUser); err != nil {
		t.Fatalf("this test becomes another user, which only root may: "+
			"run it as root (or leave it out with go test -skip Container): %v", err)
	}

	if err := os.Chmod(c.volume, 0o770|os.ModeSetgid); err != nil {
		t.Fatal(err)
	}

	helper := filepath.Join(dir, "helper")
	text := fmt.Sprintf("#!/bin/sh\nexport %s=contained %s=%s:%s\nexec %s \"$@\"\n",
		harness.HelperVariable, containerVariable, root, c.volume, os.Args[0])
	if err := os.WriteFile(helper, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}

	c.script = harness.LimitMemory(t, helper, harness.CgroupBytes)
	return c
}

// start runs the container with the manifest's arguments and variables. change replaces
// parts of the arguments.
func (c *contained) start(listen string, change ...string) *harness.Node {
	c.t.Helper()
	env := []string{"PROMPTSPOOL_BOOTSTRAP_KEY="} // the manifests use a file
	for _, v := range c.spec.Env {
		env = append(env, v.Name+"="+v.Value)
	}

	args := strings.Split(strings.NewReplacer(change...).Replace(strings.Join(c.spec.Args, "\x00")), "\x00")

	n := harness.Begin(c.t, c.script, env, "/data/"+args[0], listen, args...)
	n.Data = filepath.Join(c.volume, args[0])
	if !n.Takes() {
		c.t.Fatalf("%s ended before it took calls:\n%s", args[0], n.Logged())
	}

	return n
}

// runContained makes this process the container: it takes a root, a user and no rights,
// and then runs the program.
func runContained() {
	runtime.LockOSThread() // the settings below are of one thread, which then runs the program
	root, volume, _ := strings.Cut(os.Getenv(containerVariable), ":")
	_ = os.Unsetenv(containerVariable)
	_ = os.Unsetenv(harness.HelperVariable)

	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}

	must(unix.Unshare(unix.CLONE_NEWNS))
	must(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	must(unix.Mount(root, root, "", unix.MS_BIND, ""))
	must(unix.Mount(volume, root+"/data", "", unix.MS_BIND, ""))
	for _, kernel := range []string{"/proc", "/sys/fs/cgroup"} {
		must(unix.Mount(kernel, root+kernel, "", unix.MS_BIND|unix.MS_REC, ""))
	}

	must(unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
	must(os.Chdir(root))
	must(unix.PivotRoot(".", "."))
	must(unix.Unmount(".", unix.MNT_DETACH)) // with all that other tests have mounted
	for right := uintptr(0); unix.Prctl(unix.PR_CAPBSET_DROP, right, 0, 0, 0) == nil; right++ {
	}

	must(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	must(syscall.Setgroups(nil))
	must(syscall.Setresgid(containerUser, containerUser, containerUser))
	must(syscall.Setresuid(containerUser, containerUser, containerUser))
	must(unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)) // becoming another user reset it

	must(syscall.Exec("/promptspool", append([]string{"promptspool"}, os.Args[1:]...), os.Environ()))
}

// wantContained checks from outside that a process runs as its manifest wants.
func wantContained(t *testing.T, n *harness.Node) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.Cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Join(strings.Fields(string(status)), " ")
	for _, want := range []string{
		"Uid: 65532 65532 65532 65532", "Gid: 65532 65532 65532 65532",
		"CapEff: 0000000000000000", "CapBnd: 0000000000000000", "NoNewPrivs: 1",
	} {
		if !strings.Contains(fields, want) {
			t.Errorf("it does not run as it should: no %q in\n%s", want, status)
		}
	}

	group, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", n.Cmd.Process.Pid))
	if err != nil || !strings.Contains(string(group), harness.CgroupPrefix) {
		t.Errorf("it runs outside its cgroup: %v\n%s", err, group)
	}

	info, err := os.Stat(n.Data)
	if err != nil || info.Mode() != os.ModeDir|os.ModeSetgid|0o700 && info.Mode() != os.ModeDir|0o700 ||
		info.Sys().(*syscall.Stat_t).Uid != containerUser {
		t.Errorf("its folder is %v, %v", info, err)
	}
}

// probe calls what the manifest's probes call.
func (c *contained) probe(n *harness.Node) {
	c.t.Helper()
	for _, p := range []probe{c.spec.StartupProbe, c.spec.ReadinessProbe, c.spec.LivenessProbe} {
		status := 0
		n.Eventually(func() bool {
			res, err := http.Get("http://" + n.Ops + p.HTTPGet.Path)
			if err != nil {
				return false
			}
			res.Body.Close()
			status = res.StatusCode
			return status == 200
		}, func() string { return fmt.Sprintf("%s answers %d", p.HTTPGet.Path, status) })
	}
}

// The whole story in containers of 96 MiB whose root cannot be written: templates, calls
// and what is attached to them, while server and sidecar are killed in turn.
func TestAContainerKeepsEveryCallThroughKills(t *testing.T) {
	t.Parallel()
	addr := harness.FreePort(t)
	spec := containerIn(t, "base/server.yaml", "server")
	centre := newContained(t, spec, map[string]string{"bootstrap-key": harness.AdminKey})
	beside := newContained(t, containerIn(t, "emptydir/sidecar.yaml", "promptspool"), nil)
	startSidecar := func() *harness.Node {
		return beside.start("127.0.0.1:0", "http://promptspool:8788", "http://"+addr)
	}

	server, sidecar := centre.start(addr), startSidecar()
	for c, n := range map[*contained]*harness.Node{centre: server, beside: sidecar} {
		wantContained(t, n)
		c.probe(n)
	}
	created := sidecar.Call("POST", "/rest/prompt-templates", harness.Greeting("Hello {name}", "prod"),
		"X-API-KEY", harness.AdminKey)
	if created.Status != 201 {
		t.Fatalf("publishing: %d %s", created.Status, created.Body)
	}
	fetch := func(cached string) {
		t.Helper()
		var r harness.Reply
		sidecar.Eventually(func() bool {
			ask := `{"label": "prod", "input_variables": {"name": "Ann"}}`
			r = sidecar.Call("POST", "/prompt-templates/team/greet", ask, "X-API-KEY", harness.AdminKey)
			return r.Status == 200 && strings.Contains(string(r.Body), "Hello Ann") &&
				strings.Contains(cached, r.Header.Get("X-Cache"))
		}, func() string {
			return fmt.Sprintf("the template: %d %s, %s", r.Status, r.Header.Get("X-Cache"), r.Body)
		})
	}
	fetch("hit miss")

	var ids []string
	log := func() {
		t.Helper()
		for range 10 {
			id := sidecar.Track("/rest/track-request", harness.AdminKey, harness.Chat())
			sidecar.Track("/rest/track-score", harness.AdminKey, map[string]any{"request_id": id, "score": 87})
			sidecar.Track("/rest/track-metadata", harness.AdminKey, map[string]any{
				"request_id": id, "metadata": map[string]string{"user_id": "ann"},
			})
			sidecar.Track("/rest/track-prompt", harness.AdminKey, map[string]any{
				"request_id": id, "prompt_name": "team/greet", "label": "prod",
				"prompt_input_variables": map[string]string{"name": "Ann"},
			})
			ids = append(ids, id)
		}
	}

	log()
	sidecar.Kill() // in the midst of delivering
	sidecar = startSidecar()
	log()
	server.Kill()
	log()
	sidecar.Kill()
	sidecar = startSidecar()
	fetch("stale") // from its disk
	log()
	server = centre.start(addr)
	sidecar.Emptied()

	for _, id := range ids {
		rec := server.Record(id, harness.Events(4))
		prompted := rec.Prompt != nil && *rec.Prompt.Version == 1
		if rec.Scores[0].Number != 87 || rec.Metadata["user_id"] != "ann" || !prompted {
			t.Errorf("%s: %+v", id, rec)
		}
	}
	if got := server.Total(nil); got != len(ids) {
		t.Errorf("%d records, want %d", got, len(ids))
	}

	t.Logf("at most resident: sidecar %d MiB, server %d MiB",
		harness.MemoryOf(t, sidecar, "VmHWM")>>20, harness.MemoryOf(t, server, "VmHWM")>>20)

	sidecar.Stop()
	server.Stop()

	for _, n := range []*harness.Node{sidecar, server} {
		if strings.Contains(n.Logged(), `"level":"ERROR"`) {
			t.Errorf("an error was logged:\n%s", n.Logged())
		}
	}
}

// A container cannot write outside its volume, or the root would not be read-only.
func TestAContainerCannotWriteItsRoot(t *testing.T) {
	t.Parallel()
	c := newContained(t, containerIn(t, "emptydir/sidecar.yaml", "promptspool"), nil)
	n := harness.Begin(t, c.script, nil, "/elsewhere", "127.0.0.1:0", "sidecar", "--upstream", "http://127.0.0.1:1")
	if n.Takes() || !strings.Contains(n.Logged(), "read-only file system") {
		t.Errorf("a data folder outside the volume: %s", n.Logged())
	}
}
