package task_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"ridgepoint/configs/tasks"
	"ridgepoint/harness"
	"ridgepoint/harness/task"
)

// FuzzTask: whatever a task file holds, loading gives a task or one placed *task.Error.
func FuzzTask(f *testing.F) {
	f.Add(sevenLines)
	f.Add("# nothing\n") // refused, as the next is
	f.Add(sevenLines + "vary: {rows: [4]}\n")
	for _, name := range tasks.Names() {
		b, err := fs.ReadFile(tasks.FS, name+"/task.yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(strings.ReplaceAll(string(b), ", baseline: naive.cu", ""))
	}
	f.Fuzz(func(t *testing.T, text string) {
		tk, err := task.Parse("task.yaml", text, &task.Host{March: "x86-64"})
		checkError(t, text, err)
		if err == nil && (tk.Digest == "" || len(tk.Sizes) == 0 || len(tk.Targets) == 0) {
			t.Errorf("a task without digest, sizes or targets: %+v", tk)
		}
	})
}

// FuzzStructure: the same of structure files; one that loads has a default candidate.
func FuzzStructure(f *testing.F) {
	f.Add(rowsStructure)
	tk, err := task.Parse("task.yaml", strings.Replace(sevenLines, "maxrregcount: 128, ", "", 1), nil)
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range tasks.Names() {
		files, err := fs.Glob(tasks.FS, name+"/structures/cuda/*.cu")
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			b, err := fs.ReadFile(tasks.FS, file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(b))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := task.ParseStructure("k.cu", text, tk, harness.TargetCUDA)
		checkError(t, text, err)
		if err != nil {
			return
		}
		if c, err := task.NewCandidate(tk, s, nil); err != nil || c.ID() == "" {
			t.Errorf("loads, but has no default candidate: %v", err)
		}
	})
}

func checkError(t *testing.T, text string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	var te *task.Error
	if !errors.As(err, &te) || te.Reason == "" || te.Remedy == "" || te.Line > strings.Count(text, "\n")+strings.Count(text, "\r")+2 || te.Line < 0 || te.Column < 0 {
		t.Errorf("%q: %v", text, err)
	}
}
