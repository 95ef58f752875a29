package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
	"github.com/prometheus/client_golang/prometheus"

	"ridgepoint/workers/observe"
	"ridgepoint/workers/redistest"
)

func deployFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// parses reports whether a command line is one that this binary takes.
func parses(args []string) error {
	var c cli
	parser, err := kong.New(&c, kong.Name("ridgepoint"), kong.Exit(func(int) {}), kong.Writers(io.Discard, io.Discard))
	if err != nil {
		return err
	}
	_, err = parser.Parse(args)
	return err
}

// TestDashboard holds the dashboard and the alerts to metrics that exist.
func TestDashboard(t *testing.T) {
	t.Parallel()
	var dashboard struct {
		Title  string
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ Expr string }
		}
	}
	text := deployFile(t, "grafana/ridgepoint.json")
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	ids := map[int]bool{}
	for _, p := range dashboard.Panels {
		if p.Title == "" || len(p.Targets) == 0 || ids[p.ID] {
			t.Errorf("panel %d %q: no title, no query, or its id is another's", p.ID, p.Title)
		}
		ids[p.ID] = true
	}
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	alerts := deployFile(t, "prometheus/ridgepoint-rules.yaml")
	if err := yaml.Unmarshal(alerts, &rules); err != nil || len(rules.Groups) == 0 {
		t.Fatalf("rules: %v", err)
	}
	known := map[string]bool{}
	descs := make(chan *prometheus.Desc, 1000) // more than there are metrics
	observe.NewMetrics().Registry.Describe(descs)
	close(descs)
	name := regexp.MustCompile(`fqName: "([a-z_]+)"`)
	for d := range descs {
		known[name.FindStringSubmatch(d.String())[1]] = true
	}
	used := map[string]bool{}
	for _, m := range regexp.MustCompile(`ridgepoint_[a-z_]+`).FindAllString(string(text)+string(alerts), -1) {
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			m = strings.TrimSuffix(m, suffix)
		}
		used[m] = true
		if !known[m] {
			t.Errorf("the dashboard asks for %s, which no process has", m)
		}
	}
	for m := range known {
		if strings.HasPrefix(m, "ridgepoint_") && !used[m] {
			t.Errorf("nothing shows %s", m)
		}
	}
}

var pinned = regexp.MustCompile(`^(docker\.io/[a-z./-]+|ridgepoint-[a-z]+):[0-9$][A-Za-z0-9.${}-]*$`)

// TestContainerFiles holds images to pinned versions and commands to what the binary takes.
func TestContainerFiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", "deploy", "containers", "*.Containerfile"))
	if err != nil || len(files) != 3 {
		t.Fatalf("container files %v %v; want three", files, err)
	}
	module := goVersion(t)
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		stages, user, entry := 0, false, false
		for line := range strings.Lines(string(b)) {
			word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch word {
			case "FROM":
				stages++
				image := strings.Fields(rest)[0]
				if !pinned.MatchString(image) {
					t.Errorf("%s: image %s is not pinned to a version", file, image)
				}
				if v, ok := strings.CutPrefix(image, "docker.io/library/golang:"); ok && !strings.HasPrefix(v, module) {
					t.Errorf("%s builds with Go %s; go.mod asks for %s", file, v, module)
				}
			case "USER":
				user = user || strings.TrimSpace(rest) != "root" && strings.TrimSpace(rest) != "0"
			case "ENTRYPOINT":
				entry = rest == `["/usr/local/bin/ridgepoint"]`
			case "CMD":
				var args []string
				if err := json.Unmarshal([]byte(rest), &args); err != nil {
					t.Errorf("%s: CMD %s: %v", file, rest, err)
				} else if err := parses(args); err != nil {
					t.Errorf("%s: CMD %v: %v", file, args, err)
				}
			}
		}
		if stages != 2 || !user || !entry {
			t.Errorf("%s: %d stages, an unprivileged user: %v, the binary as entry point: %v", file, stages, user, entry)
		}
	}
}

func goVersion(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(b)
	return string(m[1])
}

// knownVariables are the environment variables that the program reads, by a look at its source.
func knownVariables(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}

func checkEnvironment(t *testing.T, where string, names []string) {
	t.Helper()
	source := knownVariables(t)
	for _, name := range names {
		if strings.HasPrefix(name, "RIDGEPOINT_") && !strings.Contains(source, `"`+name+`"`) {
			t.Errorf("%s sets %s, which nothing reads", where, name)
		}
	}
}

// TestCompose holds the compose file to its schema as far as it matters here, and to what the binary takes.
func TestCompose(t *testing.T) {
	t.Parallel()
	var file struct {
		Services map[string]struct {
			Image       string
			Build       struct{ Context, Dockerfile string }
			Command     []string
			Environment map[string]string
			Secrets     []string
			Volumes     []string
			Networks    []string
			Restart     string
		}
		Secrets  map[string]struct{ File string }
		Volumes  map[string]any
		Networks map[string]any
	}
	if err := yaml.Unmarshal(deployFile(t, "compose/compose.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Services) != 4 {
		t.Fatalf("%d services; want redis, scheduler, compile and gpu", len(file.Services))
	}
	for name, s := range file.Services {
		if s.Restart != "unless-stopped" {
			t.Errorf("%s is not started again when it dies", name)
		}
		for _, secret := range s.Secrets {
			if file.Secrets[secret].File == "" {
				t.Errorf("%s: secret %s is not declared", name, secret)
			}
		}
		for _, v := range s.Volumes {
			source, _, _ := strings.Cut(v, ":")
			if _, ok := file.Volumes[source]; !ok && !strings.HasPrefix(source, ".") {
				t.Errorf("%s: volume %s is not declared", name, source)
			}
		}
		if name == "redis" {
			if !pinned.MatchString(s.Image) {
				t.Errorf("image %s is not pinned", s.Image)
			}
			continue
		}
		if _, err := os.Stat(filepath.Join("..", "..", s.Build.Dockerfile)); err != nil {
			t.Error(err)
		}
		if err := parses(s.Command); err != nil {
			t.Errorf("%s: command %v: %v", name, s.Command, err)
		}
		var names []string
		for k := range s.Environment {
			names = append(names, k)
		}
		checkEnvironment(t, "compose "+name, names)
		if s.Environment["RIDGEPOINT_REDIS"] == "" || s.Environment["RIDGEPOINT_KEY_FILE"] == "" {
			t.Errorf("%s: merged environment %v lacks Redis or the key", name, s.Environment)
		}
	}
}

// TestKubernetes holds the manifests to what can be checked without a cluster.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	type container struct {
		Name, Image string
		Args        []string
		Env         []struct{ Name, Value string }
		Ports       []struct {
			Name          string
			ContainerPort int `yaml:"containerPort"`
		}
		VolumeMounts []struct{ Name string } `yaml:"volumeMounts"`
		Liveness     *struct{}               `yaml:"livenessProbe"`
		Readiness    *struct{}               `yaml:"readinessProbe"`
		Security     struct {
			AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
		} `yaml:"securityContext"`
	}
	type manifest struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct{ Name, Namespace string }
		Spec       struct {
			Replicas int
			Selector struct {
				MatchLabels map[string]string `yaml:"matchLabels"`
			}
			Template struct {
				Metadata struct{ Labels map[string]string }
				Spec     struct {
					Containers []container
					Volumes    []struct{ Name string }
				}
			}
			Claims []struct{ Metadata struct{ Name string } } `yaml:"volumeClaimTemplates"`
		}
	}
	dec := yaml.NewDecoder(bytes.NewReader(deployFile(t, "kubernetes/ridgepoint.yaml")))
	kinds := map[string]int{}
	for {
		var m manifest
		err := dec.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		kinds[m.Kind]++
		if m.APIVersion == "" || m.Metadata.Name == "" || m.Kind != "Namespace" && m.Metadata.Namespace != "ridgepoint" {
			t.Errorf("%s %s lacks its version, name or namespace", m.Kind, m.Metadata.Name)
		}
		if m.Kind != "StatefulSet" {
			continue
		}
		where := "kubernetes " + m.Metadata.Name
		if m.Spec.Selector.MatchLabels["app"] != m.Spec.Template.Metadata.Labels["app"] {
			t.Errorf("%s: its selector does not find its pods", where)
		}
		volumes := map[string]bool{}
		for _, v := range m.Spec.Template.Spec.Volumes {
			volumes[v.Name] = true
		}
		for _, v := range m.Spec.Claims {
			volumes[v.Metadata.Name] = true
		}
		for _, c := range m.Spec.Template.Spec.Containers {
			if !pinned.MatchString(c.Image) || c.Liveness == nil || c.Readiness == nil || c.Security.AllowPrivilegeEscalation == nil || *c.Security.AllowPrivilegeEscalation {
				t.Errorf("%s: image %s must be pinned, have both probes, and gain no privileges", where, c.Image)
			}
			for _, v := range c.VolumeMounts {
				if !volumes[v.Name] {
					t.Errorf("%s: volume %s is not declared", where, v.Name)
				}
			}
			if len(c.Args) > 0 {
				if err := parses(c.Args); err != nil {
					t.Errorf("%s: args %v: %v", where, c.Args, err)
				}
			}
			var names []string
			for _, e := range c.Env {
				names = append(names, e.Name)
			}
			checkEnvironment(t, where, names)
		}
		if m.Metadata.Name == "scheduler" && m.Spec.Replicas != 1 {
			t.Error("one store has one scheduler: replicas must be 1")
		}
	}
	if kinds["StatefulSet"] != 4 || kinds["NetworkPolicy"] != 1 || kinds["Service"] != 1 {
		t.Errorf("manifests %v; want four StatefulSets, a Service and a NetworkPolicy", kinds)
	}
}

// TestSystemd has systemd check the units, with a program that exists in the place of the binary, and parses their commands.
func TestSystemd(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("no systemd-analyze on this machine: apt-get install systemd")
	}
	dir := t.TempDir()
	for _, name := range []string{"ridgepoint-scheduler.service", "ridgepoint-worker.service"} {
		text := string(deployFile(t, "systemd/"+name))
		command := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/ridgepoint (.*)$`).FindStringSubmatch(text)
		if command == nil {
			t.Fatalf("%s starts something else", name)
		}
		if err := parses(strings.Fields(command[1])); err != nil {
			t.Errorf("%s: %s: %v", name, command[1], err)
		}
		checkEnvironment(t, name, regexp.MustCompile(`RIDGEPOINT_[A-Z_]+`).FindAllString(text, -1))
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.Replace(text, "/usr/local/bin/ridgepoint", "/bin/true", 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", path).CombinedOutput()
		if err != nil || bytes.Contains(out, []byte(name)) {
			t.Errorf("systemd-analyze verify %s: %v\n%s", name, err, out)
		}
	}
}

// TestRedisACL starts a redis-server with deploy's configuration and users, runs a campaign as them, and shows what strangers
// and the watcher may not do.
func TestRedisACL(t *testing.T) {
	t.Parallel()
	redistest.Skip(t)
	dir := t.TempDir()
	secrets := filepath.Join(dir, "secrets")
	if out, err := exec.CommandContext(t.Context(), filepath.Join("..", "..", "deploy", "redis", "make-secrets"), secrets).CombinedOutput(); err != nil {
		t.Fatalf("make-secrets: %v\n%s", err, out)
	}
	conf := filepath.Join(dir, "redis.conf")
	text := regexp.MustCompile(`(?m)^(bind|port|aclfile|save|appendonly) .*$`).ReplaceAllString(string(deployFile(t, "redis/redis.conf")), "")
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	srv := redistest.StartWith(t, conf, "--aclfile", filepath.Join(secrets, "users.acl"))
	as := func(user string, args ...string) []string {
		return append(args, "--redis", srv.URL, "--redis-user", user, "--redis-password-file", filepath.Join(secrets, user+".password"))
	}
	env, _, errs := scriptedEnv(t, as("worker", "run", "softmax-cpu", "--evaluations", "8", "--data", filepath.Join(dir, "data"), "--json",
		"--limits", "gpu=1", "--key-file", filepath.Join(secrets, "ridgepoint.key"))...)
	started := time.Now()
	if code := run(t.Context(), env); code != exitOK {
		t.Fatalf("a campaign as worker: exit code %d after %v: %s", code, time.Since(started), errs)
	}
	env, out, errs := scriptedEnv(t, as("watcher", "fleet", "--json")...)
	if code := run(t.Context(), env); code != exitOK || !strings.Contains(out.String(), "results:") {
		t.Errorf("fleet as watcher: exit code %d: %s", code, errs)
	}
	env, _, errs = scriptedEnv(t, as("watcher", "drain", "host1", "--undo")...)
	if code := run(t.Context(), env); code != exitInfra || !strings.Contains(errs.String(), "NOPERM") {
		t.Errorf("drain as watcher: exit code %d: %s; want it refused", code, errs)
	}
	env, _, errs = scriptedEnv(t, "fleet", "--redis", srv.URL)
	if code := run(t.Context(), env); code != exitInfra || !strings.Contains(errs.String(), "NOAUTH") {
		t.Errorf("fleet as nobody: exit code %d: %s; want it refused", code, errs)
	}
	refused := exec.CommandContext(t.Context(), "redis-cli", "-s", strings.TrimPrefix(srv.URL, "unix://"), "--user", "worker", "--pass", string(mustRead(t, filepath.Join(secrets, "worker.password"))), "--no-auth-warning", "CONFIG", "GET", "*")
	if out, _ := refused.CombinedOutput(); !bytes.Contains(out, []byte("NOPERM")) {
		t.Errorf("CONFIG as worker: %s; want it refused", out)
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestPlantedBugs wants a planted bug for each fuzz target, which applies to the code as it is.
func TestPlantedBugs(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	patches, err := filepath.Glob(filepath.Join(root, "deploy", "planted", "*.patch"))
	if err != nil {
		t.Fatal(err)
	}
	planted := map[string]bool{}
	for _, file := range patches {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		planted[lines[0]] = true
		source, ok := strings.CutPrefix(lines[1], "--- a/")
		if !ok {
			t.Fatalf("%s: line 2 is %q, want --- a/FILE", file, lines[1])
		}
		code, err := os.ReadFile(filepath.Join(root, source))
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lines[3:] {
			if old, ok := strings.CutPrefix(l, "-"); ok && !strings.Contains(string(code), old+"\n") {
				t.Errorf("%s takes out a line that %s no longer has: %q; write the patch anew", filepath.Base(file), source, old)
			}
		}
	}
	target := regexp.MustCompile(`(?m)^func (Fuzz[A-Za-z0-9_]+)`)
	found := 0
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != "..":
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		for _, m := range target.FindAllStringSubmatch(string(text), -1) {
			if found++; !planted[m[1]+" ./"+filepath.ToSlash(folder)] {
				t.Errorf("no bug is planted for %s of %s: deploy/planted wants a patch that it finds", m[1], folder)
			}
		}
		return err
	})
	if err != nil || found < 15 {
		t.Errorf("%d fuzz targets, %v", found, err)
	}
}
