// Package library offers structure files one by one: the proposer where no model is configured. It asks nobody and costs
// nothing.
package library

import (
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"
	"sync"

	"ridgepoint/llm"
)

// File is one structure file.
type File struct {
	Name string
	Text string
}

// Library hands out files in a fixed order, each once. It is safe for concurrent use.
type Library struct {
	mu    sync.Mutex
	files []File
	next  int
}

// New returns a library of the given files, in their order.
func New(files []File) *Library { return &Library{files: append([]File(nil), files...)} }

// Open reads all files of fsys that match one of the globs and end in .c, .cu or .hip, sorted by name.
func Open(fsys fs.FS, globs ...string) (*Library, error) {
	seen := map[string]bool{}
	var names []string
	for _, glob := range globs {
		found, err := fs.Glob(fsys, glob)
		if err != nil {
			return nil, fmt.Errorf("library %q: %w", glob, err)
		}
		for _, name := range found {
			if ext := path.Ext(name); (ext == ".c" || ext == ".cu" || ext == ".hip") && !seen[name] {
				seen[name], names = true, append(names, name)
			}
		}
	}
	sort.Strings(names)
	l := &Library{}
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("library: %w", err)
		}
		l.files = append(l.files, File{Name: strings.TrimSuffix(path.Base(name), path.Ext(name)), Text: string(text)})
	}
	return l, nil
}

// Next returns the next file, or an error that wraps llm.ErrNoMore.
func (l *Library) Next() (File, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == len(l.files) {
		return File{}, fmt.Errorf("library of %d structures: %w", len(l.files), llm.ErrNoMore)
	}
	l.next++
	return l.files[l.next-1], nil
}

// Skip passes over the first n files: those that an earlier run of the campaign has taken.
func (l *Library) Skip(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next = min(len(l.files), max(0, n))
}

// Left returns how many files were not handed out yet.
func (l *Library) Left() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.files) - l.next
}
