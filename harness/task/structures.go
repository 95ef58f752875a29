package task

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"ridgepoint/harness"
)

// Structures loads the structure files that the task's patterns name for one target, sorted by name: .c for cpu, .cu for
// cuda, .hip and .cu for hip. A wrong file is an *Error.
func (l *Loaded) Structures(target harness.Target) ([]*harness.Structure, error) {
	var files []string
	for _, glob := range l.Task.Structures {
		found, err := fs.Glob(l.folder.fsys, path.Join(l.folder.dir, glob))
		if err != nil {
			return nil, fmt.Errorf("find structures %s: %w", glob, err)
		}
		for _, f := range found {
			if hasExtension(f, target) && !slices.Contains(files, f) {
				files = append(files, f)
			}
		}
	}
	sort.Strings(files)
	var out []*harness.Structure
	for _, f := range files {
		shown := l.folder.show(strings.TrimPrefix(f, l.folder.dir+"/"))
		b, err := fs.ReadFile(l.folder.fsys, f)
		if err != nil {
			return nil, &Error{File: shown, Reason: readReason(err), Remedy: "make the file readable, or leave it out of the pattern"}
		}
		s, err := ParseStructure(shown, string(b), l.Task, target)
		if err != nil {
			return nil, err
		}
		s.Shipped = l.Shipped
		out = append(out, s)
	}
	return out, nil
}

// TargetOf returns the target of the task that a structure file's extension stands for; an *Error when there is none.
func TargetOf(file string, t *harness.Task) (harness.Target, error) {
	var have []string
	for _, spec := range t.Targets {
		if hasExtension(file, spec.Target) {
			return spec.Target, nil
		}
		have = append(have, spec.Target.String())
	}
	return harness.TargetInvalid, &Error{File: file, Reason: fmt.Sprintf("extension %q fits no target of task %s (%s)", path.Ext(file), t.Name, strings.Join(have, ", ")),
		Remedy: "name C files .c, CUDA files .cu and HIP files .hip"}
}

func hasExtension(file string, target harness.Target) bool {
	switch path.Ext(file) {
	case ".c":
		return target == harness.TargetCPU
	case ".cu":
		return target == harness.TargetCUDA || target == harness.TargetHIP
	case ".hip":
		return target == harness.TargetHIP
	default:
		return false
	}
}

// LoadStructure loads one structure file by its path for a target of the task; TargetInvalid takes the target from the
// extension. A wrong file is an *Error.
func LoadStructure(file string, t *harness.Task, target harness.Target) (*harness.Structure, error) {
	if target == harness.TargetInvalid {
		var err error
		if target, err = TargetOf(filepath.ToSlash(file), t); err != nil {
			return nil, err
		}
	}
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, &Error{File: file, Reason: "is no regular file", Remedy: "give the path of a structure file"}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, &Error{File: file, Reason: readReason(err), Remedy: "give the path of a structure file"}
	}
	return ParseStructure(file, string(b), t, target)
}

// Baseline returns the task's baseline for a target as a structure named baseline; an *Error when the task has none.
func Baseline(t *harness.Task, target harness.Target) (*harness.Structure, error) {
	spec, ok := t.Target(target)
	if !ok || spec.Baseline.Text == "" {
		file := "naive.cu"
		if target == harness.TargetCPU {
			file = "naive.c"
		}
		return nil, &Error{File: t.File, Reason: fmt.Sprintf("task %s has no baseline for the %s target", t.Name, target),
			Remedy: fmt.Sprintf("add `baseline: %s` under targets.%s", file, target)}
	}
	s, err := ParseStructure(spec.Baseline.Name, spec.Baseline.Text, t, target)
	if err != nil {
		return nil, err
	}
	s.Name, s.Direction = "baseline", "baseline"
	return s, nil
}
