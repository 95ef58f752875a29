package queue

import (
	"bytes"
	"net"
	"os"
	"sync"
	"time"
)

// roomy is a client's end of a connection to the embedded Redis, which is a pipe without any room: a pipeline longer than the
// server's read buffer would wait for the server to read on, which waits for its first answers to be taken. Here they are
// taken as they come, as a socket's buffer would.
type roomy struct {
	net.Conn
	done chan struct{} // closed when nothing comes any more

	mu       sync.Mutex
	came     bytes.Buffer
	err      error // of the pipe, after what came
	deadline time.Time
	changed  chan struct{} // closed and made anew when any of the above changes
}

// newRoomy takes a connection over. Close ends what it starts.
func newRoomy(c net.Conn) *roomy {
	r := &roomy{Conn: c, done: make(chan struct{}), changed: make(chan struct{})}
	go r.pump() // ends with the connection; Close waits for it
	return r
}

func (r *roomy) pump() {
	defer close(r.done)
	chunk := make([]byte, 16<<10)
	for {
		n, err := r.Conn.Read(chunk)
		r.mu.Lock()
		_, _ = r.came.Write(chunk[:n]) // never fails
		r.err = err
		r.wakeLocked()
		r.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (r *roomy) wakeLocked() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// Read waits for bytes, the deadline or the end.
func (r *roomy) Read(p []byte) (int, error) {
	for {
		r.mu.Lock()
		if r.came.Len() > 0 {
			n, _ := r.came.Read(p) // there is something: no error
			r.mu.Unlock()
			return n, nil
		}
		err, deadline, changed := r.err, r.deadline, r.changed
		r.mu.Unlock()
		if err != nil {
			return 0, err
		}
		if err := awaitChange(changed, deadline); err != nil {
			return 0, err
		}
	}
}

// awaitChange waits until changed is closed; the zero deadline is none.
func awaitChange(changed <-chan struct{}, deadline time.Time) error {
	if deadline.IsZero() {
		<-changed
		return nil
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-changed:
		return nil
	case <-timer.C:
		return os.ErrDeadlineExceeded
	}
}

// SetReadDeadline bounds Reads, also one that waits now.
func (r *roomy) SetReadDeadline(t time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deadline = t
	r.wakeLocked()
	return nil
}

// SetDeadline bounds Reads and Writes.
func (r *roomy) SetDeadline(t time.Time) error {
	if err := r.SetWriteDeadline(t); err != nil {
		return err
	}
	return r.SetReadDeadline(t)
}

// Close ends the connection and waits until nothing of it runs.
func (r *roomy) Close() error {
	err := r.Conn.Close()
	<-r.done
	return err
}
