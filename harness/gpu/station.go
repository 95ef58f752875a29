package gpu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"ridgepoint/harness/cudaengine"
	"ridgepoint/harness/device"
)

// station is one device with its runner child and a warm standby. It is used by one goroutine at a time.
type station struct {
	open        openOrder
	commandFunc func() (*exec.Cmd, error)
	helpersFunc func(ctx context.Context, arch string) ([]byte, error)
	keepStandby bool

	active  *process
	standby chan standby // nil: none is on its way; a buffer of one, so that its maker never waits
	failed  int          // starts in a row that failed
}

type standby struct {
	process *process
	err     error
}

// quarantineAfter is how many starts in a row may fail, each with its health probe, before the device is given up.
const quarantineAfter = 3

// errQuarantined is wrapped when a device no longer starts.
var errQuarantined = errors.New("the device is quarantined")

// process is a runner child.
type process struct {
	cmd     *exec.Cmd
	orders  *os.File
	enc     *json.Encoder
	answers chan answer // closed when the child is gone
	info    device.Info
	peaks   cudaengine.Peaks // zero until it is active
}

// startLimit bounds a child's start: a context is 0.4 s, a busy or freshly killed device some seconds.
const startLimit = 60 * time.Second

// get returns a child that is ready: the active one, else the standby, else a fresh one.
func (s *station) get(ctx context.Context) (*process, error) {
	for s.active == nil {
		if s.failed >= quarantineAfter {
			return nil, fmt.Errorf("%w after %d starts that failed: reset or replace it, then restart this program", errQuarantined, s.failed)
		}
		p, err := s.next(ctx)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, device.ErrNoDriver) {
				return nil, err
			}
			if s.failed++; s.failed >= quarantineAfter {
				return nil, fmt.Errorf("%w: %w", errQuarantined, err)
			}
			continue
		}
		s.failed, s.active = 0, p
	}
	if s.keepStandby && s.standby == nil {
		ready := make(chan standby, 1)
		s.standby = ready
		go func() { // ends with the start's limit at the latest; drop waits for it
			p, err := s.start(context.WithoutCancel(ctx))
			ready <- standby{p, err}
		}()
	}
	return s.active, nil
}

// next returns a child that nobody uses yet, with the device's ceilings: the standby, else a fresh one.
func (s *station) next(ctx context.Context) (p *process, err error) {
	if s.standby != nil {
		w := <-s.standby
		s.standby = nil
		p = w.process // nil where it failed: the fresh start says why
	}
	if p == nil {
		if p, err = s.start(ctx); err != nil {
			return nil, err
		}
	}
	if err := p.settle(ctx); err != nil {
		p.kill()
		return nil, fmt.Errorf("start a runner child: %w", err)
	}
	return p, nil
}

func (s *station) start(ctx context.Context) (*process, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	cmd, err := s.commandFunc()
	if err != nil {
		return nil, err
	}
	childOrders, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	answers, childAnswers, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, childOrders.Close(), orders.Close())
	}
	cmd.ExtraFiles = []*os.File{childOrders, childAnswers}
	cmd.Stderr = os.Stderr
	err = cmd.Start()
	_, _ = childOrders.Close(), childAnswers.Close() // the child has its own
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a runner child: %w", err), orders.Close(), answers.Close())
	}
	p := &process{cmd: cmd, orders: orders, enc: json.NewEncoder(orders), answers: make(chan answer)}
	go p.read(answers)
	if err := p.prepare(ctx, s); err != nil {
		p.kill()
		return nil, fmt.Errorf("start a runner child: %w", err)
	}
	return p, nil
}

func (p *process) prepare(ctx context.Context, s *station) error {
	a, err := p.ask(ctx, order{Open: &s.open})
	if err != nil {
		return err
	}
	if a.Found == nil {
		return errors.New("it found no device and did not say why")
	}
	p.info = *a.Found
	helpers, err := s.helpersFunc(ctx, p.info.Arch)
	if err != nil {
		return fmt.Errorf("compile the helper kernels for %s: %w", p.info.Arch, err)
	}
	if a, err = p.ask(ctx, order{Helpers: helpers}); err != nil {
		return err
	}
	if a.Ready == nil {
		return errors.New("it did not become ready and did not say why")
	}
	return nil
}

// settle has a child that becomes the active one measure the device's ceilings. A standby's start leaves that out: for some 50 ms it
// would load the card on which the active child measures.
func (p *process) settle(ctx context.Context) error {
	a, err := p.ask(ctx, order{Peaks: true})
	if err != nil {
		return err
	}
	if a.Peaks == nil {
		return errors.New("it measured no ceilings and did not say why")
	}
	p.peaks = *a.Peaks
	return nil
}

// read owns answers; it ends when the child's end of the pipe closes.
func (p *process) read(r *os.File) {
	defer close(p.answers)
	dec := json.NewDecoder(r)
	for {
		var a answer
		if err := dec.Decode(&a); err != nil {
			_ = r.Close() // nothing more comes: the child ended, or what it wrote is no answer
			return
		}
		p.answers <- a
	}
}

// errGone says that the child ended without an answer.
var errGone = errors.New("the runner child ended without an answer")

// childError is what a child says of broken infrastructure.
type childError struct{ text string }

func (e *childError) Error() string { return e.text }

// ask sends an order and waits for its answer.
func (p *process) ask(ctx context.Context, o order) (answer, error) {
	if err := p.enc.Encode(o); err != nil {
		if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
			return answer{}, errGone
		}
		return answer{}, fmt.Errorf("order a runner child: %w", err)
	}
	select {
	case a, ok := <-p.answers:
		if !ok {
			return answer{}, errGone
		}
		if a.Error != "" {
			return a, &childError{a.Error}
		}
		return a, nil
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
}

// kill ends the child's process group and waits until it is gone.
func (p *process) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may be gone already
	_ = p.orders.Close()                                  // likewise
	for range p.answers {                                 // until read has ended
	}
	_ = p.cmd.Wait() // its status says nothing more
	if p.cmd.Dir != "" {
		_ = os.RemoveAll(p.cmd.Dir) // a confined child's scratch folder, made for it alone
	}
}

// lose ends the active child; the next get takes the standby.
func (s *station) lose() {
	if s.active != nil {
		s.active.kill()
		s.active = nil
	}
}

// drop ends every child.
func (s *station) drop() {
	s.lose()
	if s.standby != nil {
		if w := <-s.standby; w.process != nil {
			w.process.kill()
		}
		s.standby = nil
	}
}
