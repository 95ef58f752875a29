package task

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"

	"ridgepoint/harness"
)

// Loader loads tasks by shipped name or by path.
type Loader struct {
	// Shipped holds a folder per shipped task, each with a task.yaml; nil: none.
	Shipped fs.FS
	// Host is what `arch: native` resolves to; nil: this machine, by ThisHost.
	Host *Host
}

// Loaded is a task with the folder that its relative file names start from.
type Loaded struct {
	Task    *harness.Task
	Shipped bool
	folder  folder
	host    *Host
}

// Load loads the task that arg names: a shipped name (softmax_2d), a task file, or a folder that holds a task.yaml. A wrong
// file is an *Error.
func (l Loader) Load(arg string) (*Loaded, error) {
	if l.Shipped != nil && !strings.ContainsAny(arg, `/\.`) && arg != "" {
		if _, err := fs.Stat(l.Shipped, path.Join(arg, "task.yaml")); err == nil {
			return load(folder{fsys: l.Shipped, dir: arg, shown: arg}, "task.yaml", l.Host)
		}
	}
	info, err := os.Stat(arg)
	if err != nil {
		return nil, l.notFound(arg)
	}
	file := arg
	if info.IsDir() {
		file = filepath.Join(arg, "task.yaml")
		if info, err = os.Stat(file); err != nil {
			return nil, l.notFound(arg)
		}
	}
	if !info.Mode().IsRegular() {
		return nil, &Error{File: file, Reason: "is no regular file", Remedy: "give the path of a task file"}
	}
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, fmt.Errorf("resolve %s: %w", file, err)
	}
	dir := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(abs)), "/")
	if dir == "" {
		dir = "."
	}
	return load(folder{fsys: os.DirFS("/"), dir: dir, root: "/", shown: filepath.Dir(file)}, filepath.Base(abs), l.Host)
}

func (l Loader) notFound(arg string) error {
	names := l.Names()
	remedy := "give the path of a task file"
	if len(names) > 0 {
		remedy = "give the path of a task file, or one of the shipped tasks: " + strings.Join(names, ", ")
		if k := Nearest(arg, names); k != "" {
			remedy = fmt.Sprintf("did you mean %q? %s", k, remedy)
		}
	}
	return &Error{File: arg, Reason: "no such task", Remedy: remedy}
}

// Names returns the names of the shipped tasks, sorted.
func (l Loader) Names() []string {
	if l.Shipped == nil {
		return nil
	}
	found, err := fs.Glob(l.Shipped, "*/task.yaml")
	if err != nil {
		return nil
	}
	for i, f := range found {
		found[i] = path.Dir(f)
	}
	sort.Strings(found)
	return found
}

// Load loads the task file at an operating system path.
func Load(file string) (*harness.Task, error) {
	l, err := Loader{}.Load(file)
	if err != nil {
		return nil, err
	}
	return l.Task, nil
}

// LoadFS loads the task file at a path of fsys; file names in it are relative to its folder and stay within fsys.
func LoadFS(fsys fs.FS, file string) (*Loaded, error) {
	return load(folder{fsys: fsys, dir: path.Dir(file), shown: path.Dir(file)}, path.Base(file), nil)
}

// Parse loads a task from text that stands nowhere on disk: relative file names in it are faults.
func Parse(file, text string, host *Host) (*harness.Task, error) {
	t, err := parseTask(file, text, folder{}, host)
	if err != nil {
		return nil, err
	}
	return t, nil
}

func load(f folder, base string, host *Host) (*Loaded, error) {
	file := path.Join(f.shown, base)
	text, err := f.read(base)
	if err != nil {
		return nil, &Error{File: file, Reason: readReason(err), Remedy: "give the path of a task file that can be read"}
	}
	t, err := parseTask(file, text, f, host)
	if err != nil {
		return nil, err
	}
	return &Loaded{Task: t, Shipped: f.root == "", folder: f, host: host}, nil
}

// folder is where a task file stands. Names that it reads are slash paths relative to dir, or absolute where there is a root.
type folder struct {
	fsys  fs.FS
	dir   string
	root  string // "/" when fsys is the whole file system
	shown string // dir as the person named it
}

func (f folder) resolve(name string) string {
	if f.root != "" && path.IsAbs(name) {
		return strings.TrimPrefix(path.Clean(name), "/")
	}
	return path.Join(f.dir, name)
}

// show returns the name as a person would type it from where they are.
func (f folder) show(name string) string {
	if path.IsAbs(name) {
		return name
	}
	return path.Join(f.shown, name)
}

func (f folder) read(name string) (string, error) {
	if f.fsys == nil {
		return "", errors.New("the task was not read from a file")
	}
	b, err := fs.ReadFile(f.fsys, f.resolve(name))
	return string(b), err
}

func readReason(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "no such file"
	case errors.Is(err, fs.ErrPermission):
		return "may not be read"
	case errors.Is(err, fs.ErrInvalid):
		return "the name leaves the task's folder"
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return "cannot be read: " + pe.Err.Error()
	}
	return "cannot be read: " + err.Error()
}

// digest is the SHA-256 of everything in a task but its file name, in hex.
func digest(t *harness.Task) string {
	c := *t
	c.Digest = ""
	b, err := json.Marshal(&c)
	if err != nil {
		panic(fmt.Sprintf("task: a loaded task cannot be written as JSON: %v", err)) // every value was checked when it was read
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
