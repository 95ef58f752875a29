package queue

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"ridgepoint/scheduler"
)

// TestMissingOfMany asks for far more attempts than a pipe takes at once: neither carrier may wait for itself.
func TestMissingOfMany(t *testing.T) {
	t.Parallel()
	carriers(t, func(t *testing.T, cfg Config) {
		_, _, d := fleetOf(t, cfg, Options{}, nil)
		dispatch(t, d, 3)
		var keys []scheduler.TrialKey
		for i := range int64(2500) {
			keys = append(keys, scheduler.TrialKey{Campaign: "c1", Trial: i, Attempt: 1})
		}
		missing, err := d.Missing(t.Context(), keys)
		if err != nil || len(missing) != len(keys)-3 {
			t.Errorf("%d of %d missing, %v; want all but the three that were dispatched", len(missing), len(keys), err)
		}
	})
}

// TestRoomy holds the buffered end of a pipe to what a connection does: the other end never waits, bytes come whole and in order,
// deadlines end a waiting Read, and a closed pipe gives what came before its end.
func TestRoomy(t *testing.T) {
	t.Parallel()
	server, client := net.Pipe()
	r := newRoomy(client)
	text := bytes.Repeat([]byte("0123456789"), 30_000)
	if n, err := server.Write(text); n != len(text) || err != nil { // nobody reads yet
		t.Fatalf("wrote %d %v", n, err)
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(r, got); err != nil || !bytes.Equal(got, text) {
		t.Fatalf("read %v; want what was written", err)
	}
	if err := r.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(got); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a Read after its deadline: %v", err)
	}
	if err := r.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	go func() { // ends with the deadline that is set below
		_, err := r.Read(make([]byte, 1))
		waiting <- err
	}()
	if err := r.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a Read that waited: %v; want its deadline", err)
	}
	if err := r.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Write([]byte("last")); err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(r); err != nil || string(rest) != "last" {
		t.Errorf("after the end: %q %v; want what came before it", rest, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
