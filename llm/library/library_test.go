package library_test

import (
	"errors"
	"testing"
	"testing/fstest"

	"ridgepoint/llm"
	"ridgepoint/llm/library"
)

func TestLibraryOffersEachFileOnce(t *testing.T) {
	t.Parallel()
	fsys := fstest.MapFS{"s/b.c": {Data: []byte("B")}, "s/a.c": {Data: []byte("A")}, "s/notes.md": {Data: []byte("no")}, "s/c.cu": {Data: []byte("C")}}
	l, err := library.Open(fsys, "s/*", "s/a.*")
	if err != nil {
		t.Fatal(err)
	}
	l.Skip(1)
	for _, want := range []string{"b", "c"} {
		if f, err := l.Next(); err != nil || f.Name != want {
			t.Errorf("Next = %+v, %v; want %s", f, err, want)
		}
	}
	if _, err := l.Next(); !errors.Is(err, llm.ErrNoMore) || l.Left() != 0 {
		t.Errorf("at the end: %v, %d left", err, l.Left())
	}
}
