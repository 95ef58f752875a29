package cc

import (
	"bytes"
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ridgepoint/configs/expr"
	"ridgepoint/harness"
	"ridgepoint/harness/sandbox"
	"ridgepoint/harness/task"
)

func TestMain(m *testing.M) {
	if sandbox.Main(os.Args[1:]) {
		return
	}
	os.Exit(m.Run())
}

// compilers are those of this machine, each tested alike.
func compilers(t *testing.T) []*Compiler {
	t.Helper()
	level := sandbox.LevelFull
	if sandbox.Probe().Level() != sandbox.LevelFull {
		level = sandbox.LevelReduced
	}
	var out []*Compiler
	for _, name := range []string{"gcc", "clang"} {
		if _, err := exec.LookPath(name); err != nil {
			continue
		}
		c, err := Find(t.Context(), name, Config{Timeout: 20 * time.Second, Level: level})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		t.Skip("no C compiler: install gcc")
	}
	return out
}

func candidate(t *testing.T, source string, config harness.Configuration) *harness.Candidate {
	t.Helper()
	host, err := task.ThisHost()
	if err != nil {
		t.Fatal(err)
	}
	s := &harness.Structure{Name: "k", Target: harness.TargetCPU, Source: source}
	for name := range config {
		s.Params = append(s.Params, harness.Param{Name: name})
	}
	return &harness.Candidate{Structure: s, Configuration: config, Target: harness.TargetCPU, Options: harness.BuildOptions{Arch: host.March, Features: host.Features}}
}

const addSource = `#include <math.h>
void add(const float *a, float *b, int n) {
#pragma omp parallel for
    for (int i = 0; i < n; i++) b[i] = expf(a[i]) + WIDTH;
}
`

func TestCompileMakesASharedObject(t *testing.T) {
	t.Parallel()
	for _, c := range compilers(t) {
		t.Run(c.Version(), func(t *testing.T) {
			t.Parallel()
			build, object, refused, err := c.Compile(t.Context(), candidate(t, addSource, harness.Configuration{"WIDTH": expr.Int(4)}))
			if err != nil || refused != nil {
				t.Fatalf("refused %+v, error %v", refused, err)
			}
			f, err := elf.NewFile(bytes.NewReader(object))
			if err != nil {
				t.Fatal(err)
			}
			symbols, err := f.DynamicSymbols()
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, s := range symbols {
				found = found || s.Name == "add"
			}
			if !found {
				t.Error("the object has no symbol add")
			}
			command := strings.Join(build.Command, " ")
			for _, want := range []string{"-O3", "-march=", "-DWIDTH=4", "-fopenmp", "kernel.c"} {
				if !strings.Contains(command, want) {
					t.Errorf("command %q has no %s", command, want)
				}
			}
			if strings.Contains(command, "-ffast-math") || strings.Contains(command, "/") {
				t.Errorf("command %q: want no fast math and no path", command)
			}
		})
	}
}

func TestKeyFollowsEverythingThatMatters(t *testing.T) {
	t.Parallel()
	c := compilers(t)[0]
	base := candidate(t, addSource, harness.Configuration{"WIDTH": expr.Int(4)})
	key := c.Key(base)
	if again := c.Key(candidate(t, addSource, harness.Configuration{"WIDTH": expr.Int(4)})); again != key {
		t.Error("the same candidate has another key")
	}
	for name, change := range map[string]func(x *harness.Candidate){
		"source":   func(x *harness.Candidate) { x.Structure.Source += " " },
		"macro":    func(x *harness.Candidate) { x.Configuration = harness.Configuration{"WIDTH": expr.Int(8)} },
		"arch":     func(x *harness.Candidate) { x.Options.Arch = "x86-64" },
		"feature":  func(x *harness.Candidate) { x.Options.Features = append(x.Options.Features, "extra") },
		"fastmath": func(x *harness.Candidate) { x.Options.FastMath = true },
		"flag":     func(x *harness.Candidate) { x.Options.Flags = []string{"-funroll-loops"} },
		"std":      func(x *harness.Candidate) { x.Options.Std = "c11" },
		"includes": func(x *harness.Candidate) { x.Options.IncludeHash = "abc" },
	} {
		x := candidate(t, addSource, harness.Configuration{"WIDTH": expr.Int(4)})
		change(x)
		if c.Key(x) == key {
			t.Errorf("a changed %s leaves the key", name)
		}
	}
	other := *c
	other.version = "99.0"
	if other.Key(base) == key {
		t.Error("another compiler version leaves the key")
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret.h")
	if err := os.WriteFile(secret, []byte("#define SECRET 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range compilers(t) {
		for _, r := range []struct {
			name, source string
			want         string // in the reason
			line         int
			limit        bool
			full         bool // only the full sandbox hides it
		}{
			{name: "syntax", source: "void f(void) {\n  int x = ;\n}\n", want: "kernel.c:2: expected expression", line: 2},
			{name: "undeclared", source: "int f(void) {\n\n return missing_name;\n}\n", want: "missing_name", line: 3},
			{name: "host file", source: "#include \"" + secret + "\"\nint f(void) { return SECRET; }\n", want: "secret.h", line: 1, full: true},
			{name: "password file by macro", source: "#define P \"/etc/passwd\"\n#include P\n", want: "passwd", full: true},
			{name: "binary include", source: "__asm__(\".incbin \\\"" + secret + "\\\"\");\n", want: "secret.h", full: true},
			{name: "endless include", source: "#include __FILE__\n", want: "nested"},
			{name: "gigabyte array", source: "__asm__(\".data\\n.fill 0x10000000,8,1\\n\");\n", want: "", limit: true},
			{name: "expansion bomb", source: bomb(), want: "", limit: true},
		} {
			t.Run(c.Version()+"/"+r.name, func(t *testing.T) {
				t.Parallel()
				if r.full && c.config.Level != sandbox.LevelFull {
					t.Skip("the full sandbox is not to be had here")
				}
				limited := *c
				limited.config.Timeout = 3 * time.Second
				limited.config.MemoryBytes = 1 << 30
				build, _, refused, err := limited.Compile(t.Context(), candidate(t, r.source, nil))
				if err != nil {
					t.Fatal(err)
				}
				if refused == nil {
					t.Fatalf("compiled: %+v", build)
				}
				if !strings.Contains(refused.Reason, r.want) || refused.Limit != r.limit {
					t.Errorf("reason %q, limit %v; want %q in it and limit %v\n%+v", refused.Reason, refused.Limit, r.want, r.limit, refused.Diagnostics)
				}
				if r.line > 0 && (len(refused.Diagnostics) == 0 || refused.Diagnostics[0].Line != r.line) {
					t.Errorf("diagnostics %+v, want line %d", refused.Diagnostics, r.line)
				}
				if strings.Contains(refused.Reason, filepath.Dir(secret)) {
					t.Errorf("reason %q shows a folder of the host", refused.Reason)
				}
			})
		}
	}
}

// bomb is a source whose macros expand to 2^34 tokens.
func bomb() string {
	var b strings.Builder
	b.WriteString("#define A0 1+\n")
	for i := 1; i <= 34; i++ {
		prev := "A" + string(rune('A'+(i-1)%26)) + strings.Repeat("x", (i-1)/26)
		if i == 1 {
			prev = "A0"
		}
		name := "A" + string(rune('A'+i%26)) + strings.Repeat("x", i/26)
		b.WriteString("#define " + name + " " + prev + " " + prev + "\n")
		if i == 34 {
			b.WriteString("long x = " + name + " 0;\n")
		}
	}
	return b.String()
}

func TestFindNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	if _, err := Find(t.Context(), "no-such-compiler", Config{}); !errors.Is(err, ErrNoCompiler) {
		t.Errorf("got %v, want ErrNoCompiler", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("kernel.c:2:11: error: expected expression before ';' token\n", "a\nb\n")
	f.Add("/usr/bin/ld: kernel.o: undefined reference to `x'\n", "")
	f.Add("kernel.c:10:20: warning: w\n", "x")
	f.Add("kernel.c:99999999999999999999:1: warning: w\n", "x")
	f.Fuzz(func(t *testing.T, text, source string) {
		for _, d := range parse(text, source) {
			if d.Severity != "error" && d.Severity != "warning" {
				t.Errorf("severity %q", d.Severity)
			}
		}
	})
}
