package tasks_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"ridgepoint/configs/tasks"
)

func TestEveryTaskHasItsFiles(t *testing.T) {
	t.Parallel()
	for _, name := range tasks.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, file := range []string{"task.yaml", "naive.c", "naive.cu"} {
				if b, err := fs.ReadFile(tasks.FS, name+"/"+file); err != nil || len(b) == 0 {
					t.Errorf("%s/%s: %d bytes, %v", name, file, len(b), err)
				}
			}
			for _, glob := range []string{"/structures/cpu/*.c", "/structures/cuda/*.cu"} {
				files, err := fs.Glob(tasks.FS, name+glob)
				if err != nil || len(files) < 2 {
					t.Errorf("%s%s: %d files (%v), want at least 2", name, glob, len(files), err)
				}
			}
		})
	}
}

func TestNamesAreTheFolders(t *testing.T) {
	t.Parallel()
	entries, err := fs.ReadDir(tasks.FS, ".")
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for _, e := range entries {
		if e.IsDir() {
			folders = append(folders, e.Name())
		}
	}
	if got := tasks.Names(); !slices.Equal(got, folders) {
		t.Errorf("Names() = %v, the folders are %v", got, folders)
	}
}

// A structure file without its header would be launched by the task's default launch and have nothing to tune.
func TestStructuresCarryAHeader(t *testing.T) {
	t.Parallel()
	for _, glob := range []string{"*/structures/cpu/*.c", "*/structures/cuda/*.cu"} {
		files, err := fs.Glob(tasks.FS, glob)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			b, err := fs.ReadFile(tasks.FS, file)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{"/* ridgepoint\ndirection: ", "\nlaunch:\n", "\nparams:\n", "\ndefault: {"} {
				if !strings.Contains(string(b), part) {
					t.Errorf("%s: the header lacks %q", file, part)
				}
			}
		}
	}
}

func TestTorchBaselineKnowsEveryTask(t *testing.T) {
	t.Parallel()
	b, err := fs.ReadFile(tasks.FS, "torch_baseline.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range tasks.Names() {
		if !strings.Contains(string(b), "\n    \""+name+"\": (") {
			t.Errorf("torch_baseline.py has no row for %s", name)
		}
	}
}
