package device

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// ErrClosed is returned by Do after Close.
var ErrClosed = errors.New("the device context is closed")

// Context owns a goroutine that is locked to its OS thread and holds one device's primary context.
type Context struct {
	driver *Driver
	info   Info
	work   chan job
	quit   chan struct{}
	done   chan struct{}
	once   sync.Once
	hung   atomic.Bool
	err    error // of the release, valid once done is closed
}

type job struct {
	fn    func(*Session) error
	reply chan error
}

// Open makes device index's context current on a thread of its own. A context costs 120 to 360 ms on a real card.
func (d *Driver) Open(index int) (*Context, error) {
	info, err := d.info(index)
	if err != nil {
		return nil, fmt.Errorf("open device %d: %w", index, err)
	}
	c := &Context{driver: d, info: *info, work: make(chan job), quit: make(chan struct{}), done: make(chan struct{})}
	ready := make(chan error, 1) // one answer, so that the thread never waits for its opener
	go c.run(index, ready)
	if err := <-ready; err != nil {
		return nil, fmt.Errorf("open device %d (%s): %w", index, info.Name, err)
	}
	return c, nil
}

func (c *Context) run(index int, ready chan<- error) {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, and its context with it
	defer close(c.done)
	var dev int32
	var handle uintptr
	err := c.driver.call(fnDeviceGet, uintptr(unsafe.Pointer(&dev)), uintptr(index))
	if err == nil {
		err = c.driver.call(fnContextRetain, uintptr(unsafe.Pointer(&handle)), uintptr(dev))
	}
	if err == nil {
		err = c.driver.call(fnContextSet, handle)
	}
	ready <- err
	if err != nil {
		return
	}
	s := &Session{driver: c.driver, info: &c.info}
	for {
		select {
		case j := <-c.work:
			j.reply <- j.fn(s)
		case <-c.quit:
			c.err = c.driver.call(fnContextRelease, uintptr(dev))
			return
		}
	}
}

// Info returns the device's description.
func (c *Context) Info() *Info { return &c.info }

// Driver returns the driver that made the context.
func (c *Context) Driver() *Driver { return c.driver }

// Do runs fn on the context's thread and returns its error. The Session must not be kept. Calls are served one after
// another.
func (c *Context) Do(fn func(*Session) error) error {
	if c.hung.Load() {
		return ErrHung
	}
	reply := make(chan error, 1) // one answer
	select {
	case <-c.done:
		return ErrClosed
	case c.work <- job{fn: fn, reply: reply}:
		return <-reply
	}
}

// Close waits for a running Do, releases the context and ends its thread.
func (c *Context) Close() error {
	c.once.Do(func() { close(c.quit) })
	if c.hung.Load() {
		return ErrHung // its thread never comes back
	}
	<-c.done
	return c.err
}

// Session is the driver with a current context. It exists only inside Context.Do.
type Session struct {
	driver *Driver
	info   *Info
}

// Info returns the device's description.
func (s *Session) Info() *Info { return s.info }

// Synchronize waits for everything that was queued on the device.
func (s *Session) Synchronize() error { return s.driver.call(fnContextSync) }

// ErrHung is returned by DoWithin when fn did not come back in time. The context is lost: only a new process helps.
var ErrHung = errors.New("the device did not answer in time")

// DoWithin is Do with a limit: when fn takes longer, it returns ErrHung and leaves fn's thread behind. Every later call returns
// ErrHung at once.
func (c *Context) DoWithin(limit time.Duration, fn func(*Session) error) error {
	if c.hung.Load() {
		return ErrHung
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	reply := make(chan error, 1) // one answer, which nobody takes after a hang
	select {
	case <-c.done:
		return ErrClosed
	case c.work <- job{fn: fn, reply: reply}:
	case <-timer.C:
		c.hung.Store(true)
		return ErrHung
	}
	select {
	case err := <-reply:
		return err
	case <-timer.C:
		c.hung.Store(true)
		return ErrHung
	}
}
