package spool_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"ridgepoint/workers/spool"
)

func open(t testing.TB, dir string) *spool.Spool {
	t.Helper()
	s, err := spool.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func entry(i int) spool.Entry {
	return spool.Entry{Key: fmt.Sprintf("c:%d:1:outcome", i), Scheduler: "s", Data: json.RawMessage(`{"n":1}`), PutMS: int64(i)}
}

func TestSurvivesRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	var g sync.WaitGroup
	for i := range 100 {
		g.Go(func() {
			if err := s.Put(entry(i)); err != nil {
				t.Error(err)
			}
		})
	}
	g.Wait()
	if err := s.Ack(entry(0).Key, entry(1).Key, "unknown"); err != nil {
		t.Fatal(err)
	}
	id := s.ID()
	if _, err := spool.Open(dir); !errors.Is(err, spool.ErrLocked) {
		t.Errorf("a second process: got %v; want ErrLocked", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	defer s.Close()
	if s.ID() != id {
		t.Error("the id changed with a restart: acknowledgements would not arrive")
	}
	got := s.Entries()
	if len(got) != 98 || got[0].Key != entry(2).Key || string(got[0].Data) != `{"n":1}` || !s.Has(entry(99).Key) || s.Has(entry(0).Key) {
		t.Errorf("%d entries, first %+v; want 98 from the third", len(got), got[0])
	}
	old, err := s.Expire(time.UnixMilli(1050), time.Second)
	if err != nil || len(old) != 48 || s.Len() != 50 {
		t.Errorf("expired %d (%v), %d left; want 48 and 50", len(old), err, s.Len())
	}
}

// TestTornTail cuts the log at every byte of its last record: the others are there, and the spool goes on.
func TestTornTail(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	if err := s.Put(entry(1)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "outcomes.log")
	whole, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Put(entry(2)), s.Close()); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := whole.Size(); cut < int64(len(log)); cut++ {
		for _, tail := range [][]byte{log[:cut], append(append([]byte(nil), log[:cut]...), make([]byte, 100)...)} {
			if err := os.WriteFile(path, tail, 0o600); err != nil {
				t.Fatal(err)
			}
			s := open(t, dir)
			if s.Len() != 1 || !s.Has(entry(1).Key) {
				t.Fatalf("cut at %d: %d entries; want the first", cut, s.Len())
			}
			if err := errors.Join(s.Put(entry(3)), s.Close()); err != nil {
				t.Fatal(err)
			}
			if s = open(t, dir); s.Len() != 2 {
				t.Fatalf("cut at %d: a record after the cut was lost", cut)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestCompacts shows that the log does not grow with what is acknowledged.
func TestCompacts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	defer s.Close()
	big, err := json.Marshal(string(make([]byte, 300_000)))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put(entry(0)); err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= 40; i++ { // 72 MB, more than four times what triggers it
		e := entry(i)
		e.Data = big
		if err := s.Put(e); err != nil {
			t.Fatal(err)
		}
		if err := s.Ack(e.Key); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "outcomes.log"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 20<<20 {
		t.Errorf("the log has %d bytes with one live entry", info.Size())
	}
	if s.Len() != 1 || !s.Has(entry(0).Key) {
		t.Error("compaction lost the live entry")
	}
}

func FuzzReplay(f *testing.F) {
	dir := f.TempDir()
	s := open(f, dir)
	if err := errors.Join(s.Put(entry(1)), s.Put(entry(2)), s.Ack(entry(1).Key), s.Close()); err != nil {
		f.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(dir, "outcomes.log"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(log)
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "outcomes.log"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, dir)
		n := s.Len()
		if err := errors.Join(s.Put(spool.Entry{Key: "fresh"}), s.Close()); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir)
		defer s.Close()
		if !s.Has("fresh") || s.Len() < n {
			t.Fatal("what was put after a damaged log is not there")
		}
	})
}

func BenchmarkPut(b *testing.B) {
	s := open(b, b.TempDir())
	defer s.Close()
	data, err := json.Marshal(string(make([]byte, 2000)))
	if err != nil {
		b.Fatal(err)
	}
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		i := 0
		for pb.Next() {
			i++
			if err := s.Put(spool.Entry{Key: fmt.Sprint(&pb, i), Data: data}); err != nil {
				b.Error(err)
			}
		}
	})
}
