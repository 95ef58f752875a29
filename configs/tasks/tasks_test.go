package tasks_test

import (
	"io/fs"
	"slices"
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
