package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

// allowed says which areas each area may import besides itself. configs is the composer: its subpackages expr, tasks and
// campaigns are leaves that every area may import; configs itself is imported by cmd alone.
var allowed = map[string][]string{
	"cmd":       {"workers", "scheduler", "optimizer", "harness", "llm", "configs"},
	"workers":   {"scheduler", "optimizer", "harness", "llm", "configs/"},
	"scheduler": {"optimizer", "harness", "llm", "configs/"},
	"optimizer": {"configs/"},
	"harness":   {"configs/"},
	"llm":       {"configs/"},
	"configs":   {"workers", "scheduler", "optimizer", "harness", "llm", "configs/"},
}

// leaves of configs import nothing of the project.
var leaves = []string{"configs/expr", "configs/tasks"}

func TestImportDirection(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "ridgepoint/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	seen := 0
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var pkg struct {
			ImportPath                         string
			Imports, TestImports, XTestImports []string
		}
		if err := dec.Decode(&pkg); err != nil {
			t.Fatalf("decode go list: %v", err)
		}
		seen++
		for _, path := range pkg.Imports {
			if wrong := wrongImport(pkg.ImportPath, path); wrong != "" {
				t.Errorf("%s imports %s: %s", pkg.ImportPath, path, wrong)
			}
		}
		for _, path := range append(pkg.Imports, append(pkg.TestImports, pkg.XTestImports...)...) {
			if wrong := ownedModule(pkg.ImportPath, path); wrong != "" {
				t.Errorf("%s imports %s: %s", pkg.ImportPath, path, wrong)
			}
		}
	}
	if seen < 7 {
		t.Fatalf("go list named %d packages; want the whole project", seen)
	}
}

func TestWrongImportIsFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		wrong    bool
	}{
		{"ridgepoint/harness/judge", "ridgepoint/optimizer", true},
		{"ridgepoint/llm/propose", "ridgepoint/harness", true},
		{"ridgepoint/optimizer/gp", "ridgepoint/llm", true},
		{"ridgepoint/scheduler/loop", "ridgepoint/workers/queue", true},
		{"ridgepoint/harness", "ridgepoint/configs", true},
		{"ridgepoint/configs/expr", "ridgepoint/harness", true},
		{"ridgepoint/workers/queue", "ridgepoint/scheduler/loop", false},
		{"ridgepoint/harness/task", "ridgepoint/configs/expr", false},
		{"ridgepoint/cmd/ridgepoint", "ridgepoint/configs", false},
		{"ridgepoint/harness/judge", "fmt", false},
	} {
		if got := wrongImport(c.from, c.to); (got != "") != c.wrong {
			t.Errorf("wrongImport(%s, %s) = %q, want wrong %v", c.from, c.to, got, c.wrong)
		}
	}
}

// wrongImport says why package from may not import package to; "" when it may.
func wrongImport(from, to string) string {
	to, ok := strings.CutPrefix(to, "ridgepoint/")
	if !ok {
		return ""
	}
	from = strings.TrimPrefix(from, "ridgepoint/")
	for _, leaf := range leaves {
		if from == leaf {
			return "it is a leaf and imports nothing of the project"
		}
	}
	area, _, _ := strings.Cut(from, "/")
	target, _, _ := strings.Cut(to, "/")
	if area == target && area != "configs" {
		return ""
	}
	for _, a := range allowed[area] {
		if a == target || strings.HasSuffix(a, "/") && strings.HasPrefix(to, a) {
			return ""
		}
	}
	return area + " may import only " + strings.Join(allowed[area], ", ")
}

// ownedModule says that a third-party module is used outside the one package that owns it.
func ownedModule(from, to string) string {
	for module, owner := range map[string]string{
		"github.com/hibiken/asynq":    "ridgepoint/workers/queue",
		"github.com/hibiken/asynqmon": "ridgepoint/workers/queue",
		"modernc.org/sqlite":          "ridgepoint/scheduler/memory",
	} {
		if (to == module || strings.HasPrefix(to, module+"/")) && !strings.HasPrefix(from, owner) {
			return "only " + owner + " may"
		}
	}
	return ""
}
